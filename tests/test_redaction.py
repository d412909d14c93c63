"""Secrets never leave; names and places leave on request, by the same alias everywhere."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
import reports
from hypothesis import given
from hypothesis import strategies as st

from logmfu.masking import MASK, mask
from logmfu.redaction import Replacement, mask_secrets, redact, redact_with
from logmfu.render import html, markdown
from logmfu.report import FactLine

# Put together here so that no scanner of repositories takes them for real ones.
TOKENS = [
    "hf_" + "a1B2c3D4e5" * 3,
    "ghp_" + "a1B2c3D4e5" * 3 + "abcdef",
    "github_pat_" + "11AAAA_" + "b2" * 12,
    "glpat-" + "a1B2c3D4e5" * 2,
    "sk-proj-" + "a1B2c3D4e5" * 2,
    "xoxb-" + "1234567890-abcdefabcdef",
    "AKIA" + "ABCDEFGH12345678",
    "AIza" + "b1C2" * 9,
    "eyJhbGciOiJI" + ".eyJzdWIiOiIx" + ".c2lnbmF0dXJl",
    "pypi-" + "AgEIcHlwaS5vcmc" * 2,
    "dckr_pat_" + "a1B2c3D4e5" * 2,
    "hvs." + "a1B2c3D4e5" * 2,
    "gsk_" + "a1B2c3D4e5" * 3,
    "r8_" + "a1B2c3D4e5" * 3,
    "-----BEGIN RSA " + "PRIVATE KEY-----MIIEow",
]


@pytest.mark.parametrize("token", TOKENS)
def test_known_shapes_of_tokens_are_masked(token):
    """Wherever it stands in a line; the rest of the line stays."""
    assert mask(f"rank 3: login with {token}") == f"rank 3: login with {MASK}"


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("  wandb_api_key ......... 0123456789abcdef0123", f"  wandb_api_key ......... {MASK}"),
        ("export WANDB_API_KEY=0123456789abcdef0123", f"export WANDB_API_KEY={MASK}"),
        ('{"password": "correct-horse"}', f'{{"password": "{MASK}"}}'),
        ("--hub_token abcdefgh1234", f"--hub_token {MASK}"),
        ("Authorization: Bearer abcdef0123456789", f"Authorization: Bearer {MASK}"),
        ("https://bob:hunter22@git.example.com/x", f"https://bob:{MASK}@git.example.com/x"),
        ("s3 url ?X-Amz-Signature=0123456789abcdef01", f"s3 url ?X-Amz-Signature={MASK}"),
        ("MY_SECRET_TOKEN=abc123DEF456ghi789", f"MY_SECRET_TOKEN={MASK}"),
        ("DB_PASS=hunter2secret", f"DB_PASS={MASK}"),
        ("Cookie: session=abcdef; path=/", f"Cookie: {MASK}"),
        ("curl -s -u bob:hunter2 https://x.example", f"curl -s -u {MASK} https://x.example"),
        ("wandb login --relogin 0123456789abcdef", f"wandb login --relogin {MASK}"),
        ("token=abc123def456ghi789", f"token={MASK}"),
    ],
)
def test_named_secrets_are_masked(line, masked):
    """What a name calls a secret is one, whatever it looks like; the name stays."""
    assert mask(line) == masked


@pytest.mark.parametrize(
    "line",
    [
        " iteration 10/ 100 | consumed samples: 5120 | tokens per second: 12345.6 | lm loss: 2.1E+00 |",
        "  tokenizer_type .................. GPT2BPETokenizer",
        "  vocab_extra_ids ................. 0",
        "eod_token: 50256, pad_token: </s>, eos_token_id 2",
        "hf_token: None, password: null, api_key = ********",
        "secret = 1234567890",
        "throughput per GPU (TFLOP/s/GPU): 450.1",
    ],
)
def test_ordinary_lines_are_left_alone(line):
    """Training logs are full of the word token."""
    assert mask(line) == line


@given(st.text(max_size=200))
def test_masking_twice_is_masking_once(text):
    """The mask itself is no secret."""
    assert mask(mask(text)) == mask(text)


def test_every_string_of_a_report_is_masked():
    """Facts, options, failure lines, notes, keys of mappings: nothing is left out."""
    secret = TOKENS[0]
    base = reports.incident()
    leaky = replace(
        base,
        name=secret,
        facts=(FactLine("wandb_api_key", "short", "run.log", 3), FactLine("x", secret, "run.log", 4)),
        options={"hub_token": "abc", secret: secret},
        run={**base.run, "model": {"note": secret}},
        notes=(secret,),
        losses=(secret,),
        incidents=(replace(base.incidents[0], text=secret, evidence=(reports.at(1, secret),)),),
        coverage=replace(base.coverage, examples=(replace(base.coverage.examples[0], text=secret),)),
        series=base.series.assign(path=f"/x/{secret}"),
    )
    masked = mask_secrets(leaky)
    assert secret not in repr(masked) + masked.series.path.iloc[0]
    assert (masked.facts[0].value, masked.options["hub_token"]) == (MASK, MASK)
    assert secret not in html.render(leaky)
    assert secret not in markdown.render(leaky)


def test_report_without_secrets_is_the_same_object():
    """Nothing is copied where nothing has to be hidden."""
    base = reports.healthy()
    assert mask_secrets(base).series is base.series


def private(text: str):
    """A report that carries the text as a note, redacted, and what was replaced."""
    return redact(replace(reports.incident(), notes=(text,)))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("gpu-node-07 waits for gpu-node-02", "host-1 waits for host-2"),
        ("dgx-h100-3:4120:4188 [0] NCCL INFO ready", "host-3:4120:4188 [0] NCCL INFO ready"),
        ("connect h7.pod2.compute.internal", "connect host-3"),
        ("nodes node[001-004,7]", "nodes host-3"),
        ("read /home/alice/llm/train.py:12 for alice", "read path-2.py:12 for user-1"),
        ("saved to s3://team-bucket/ckpt/10", "saved to path-2"),
        (
            "peer 10.1.2.3 and fe80::1a2b, mail bob@corp.example.com",
            "peer address-1 and address-2, mail address-3",
        ),
        ("from aa:bb:cc:dd:ee:ff", "from address-1"),
    ],
)
def test_names_and_places_get_aliases(text, shown):
    """Numbered per kind in the order they are met; the two hosts of the report come first."""
    assert private(text)[0].notes == (shown,)


@pytest.mark.parametrize(
    "text",
    [
        "450.1/445.2 TFLOP/s/GPU at iteration 10/ 1000, 12:34:56, loss 2.1E+00",
        "rank-0 bf16 node_rank 3 torch.nn.functional.linear step-100",
        "[2026-03-04 05:06:07] tokens/s/GPU: 1234.5",
    ],
)
def test_figures_and_code_get_no_alias(text):
    """A rate is no path, a time no address, a module no host."""
    assert private(text)[0].notes == (text,)


def test_replacements_are_listed():
    """The command line can say what it replaced."""
    _, replacements = private("x")
    assert Replacement("host", "gpu-node-07", "host-1") in replacements
    assert Replacement("path", reports.LOG, "path-1.log") in replacements


def test_aliases_are_the_same_in_report_series_and_excerpts():
    """A cited line is still found under its file's alias."""
    around = {
        (reports.LOG, 2104): ("a", "b", "c", "gpu-node-07: uncorrectable ECC error", "on gpu-node-11")
    }
    report, lines, _ = redact_with(reports.incident(), around)
    assert lines == {("path-1.log", 2104): ("a", "b", "c", "host-1: uncorrectable ECC error", "on host-3")}
    assert report.inputs[0].path == "path-1.log"
    assert report.incidents[0].evidence[0].path == "path-1.log"
    assert set(report.series.path) == {"path-1.log"}
    assert isinstance(report.series, pd.DataFrame)


def test_nothing_of_the_names_is_left_in_any_output():
    """Neither page nor ticket text shows a host or the folder of the log."""
    report, _ = redact(reports.incident())
    for text in (html.render(report), markdown.render(report), markdown.render(report, dialect="jira")):
        assert "gpu-node" not in text
        assert "/scratch" not in text


def test_words_of_the_report_survive_a_user_of_the_same_name():
    """A user called megatron or data does not rename the parser or the ledger's classes."""
    report, _ = private("in /home/megatron/x.py and /home/data/y.py as user=data")
    assert report.parser == "megatron"
    assert {entry.kind for entry in report.ledger} >= {"data_wait", "productive"}


@given(st.text(max_size=300))
def test_any_text_can_be_redacted(text):
    """No text makes it fail, and nothing is listed twice."""
    report, replacements = private(text)
    assert isinstance(report.notes[0], str)
    assert len({each.original for each in replacements}) == len(replacements)


def test_facts_named_as_users_and_hosts_get_aliases():
    """Where a field says what its value is, the value needs no special shape."""
    base = reports.incident()
    facts = (
        FactLine("wandb_entity", "blue", "", 0),
        FactLine("master_addr", "frontend", "", 0),
        FactLine("save", "out", "", 0),
    )
    report, _ = redact(replace(base, facts=facts, notes=("blue wrote out from frontend",)))
    assert [fact.value for fact in report.facts] == ["user-1", "host-1", "path-2"]
    assert report.notes == ("user-1 wrote path-2 from host-1",)


def test_what_names_nobody_stays():
    """Standard input, localhost and nothing at all have no alias; an address is not a host name."""
    base = reports.unclocked()
    plain = replace(
        base,
        inputs=(replace(base.inputs[0], path="-"),),
        series=base.series.iloc[:0],
        incidents=(replace(base.incidents[0], host="localhost"),),
    )
    assert redact(plain) == (plain, [])
    there = replace(plain, incidents=(replace(base.incidents[0], host="10.1.2.3"),))
    assert redact(there)[0].incidents[0].host == "address-1"
