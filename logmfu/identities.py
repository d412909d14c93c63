"""What names a person, a machine or a place: addresses, paths, users, hosts."""

from __future__ import annotations

import regex

ADDRESS = regex.compile(
    r"(?P<email>(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++)"
    r"|(?P<mac>\b[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}+\b)"
    r"|(?P<ip6>(?<![\w:.])(?:(?:[0-9A-Fa-f]{1,4}:){4,7}+[0-9A-Fa-f]{1,4}|(?=[0-9A-Fa-f:]*[A-Fa-f])[0-9A-Fa-f:]{0,30}::[0-9A-Fa-f:]{0,30}|::1)(?![\w:]))"
    r"|(?P<ip4>(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.]*\w))"
    r"|(?P<uuid>\b(?:GPU-|MIG-)[0-9a-f]{8}-[0-9a-f-]{27}\b)"
)
"""Addresses of mail, network and devices."""
PATH = regex.compile(
    r"(?P<url>\b(?:https?|ftp|s3|gs|az|abfss?|hdfs|file|ssh|tcp|git|weka|lustre|nfs)://[^\s\"'<>|,;)\]}]++)"
    r"|(?P<drive>\b[A-Za-z]:\\[^\s\"'<>|:]++|\\\\[\w.-]++\\[^\s\"'<>|:]++)"
    r"|(?P<unix>(?<![\w.)\]/}%>-])(?:~[\w-]*+|\.{1,2})?/(?=[\w.@+~-]*[A-Za-z])[\w.@+~%=-]++(?:/[\w.@+~%=-]*+)*+)"
)
"""Absolute paths and addresses of files."""
USER = regex.compile(
    r"(?:(?:/home|/users|/u|/Users|\\Users)[/\\](?P<home>[\w.-]++))"
    r"|(?i:\b(?:user(?:name)?|login|owner|logname|submitted by)['\"]?\s*+[=:]\s*+['\"]?(?P<named>[A-Za-z_][\w.-]*+))"
    r"|\buid=\d++\((?P<uid>[\w.-]++)\)|(?<=\s)~(?P<tilde>[a-z_][\w-]++)(?=/)"
)
"""User names where something says that they are."""
_HOST_LABELS = r"host(?:name)?|node(?:name|list)?|nodes|master_addr|rdzv_endpoint|pod"
_HOST_PREFIXES = (
    "ip|nodes?|gpu-?node|dgx|hgx|cn|nid|compute|worker|host|login|slurm|rack|ecs|vm|gke|aks|eks"
)
_DOMAINS = (
    "com|net|org|edu|gov|io|ai|local|internal|lan|cluster|cloud|corp|de|uk|fr|ch|jp|cn|kr|eu|us|nl|se"
)
HOST = regex.compile(
    r"(?P<nccl>(?<![\w.-])[A-Za-z][\w.-]*+)(?=:\d++:\d++ \[\d++\])"  # how NCCL begins its lines
    rf"|(?i:(?<![\w-])(?:{_HOST_LABELS})(?:['\"]?\s*+[=:]\s*+['\"]?|\s++))"
    r"(?P<named>(?=[\w.-]{0,60}[\d.-])[A-Za-z][\w.-]{0,120}\w)"
    rf"|(?P<cluster>(?<![\w./-])(?i:{_HOST_PREFIXES})(?:[-_][A-Za-z0-9_-]{{0,60}}?)?\d[\w.-]{{0,80}}(?<![.-]))"
    rf"|(?P<fqdn>(?<![\w./@-])(?:[A-Za-z0-9][\w-]*+\.){{2,}}+(?:{_DOMAINS})\b(?![\w(/-]))"
    r"|(?P<aws>\bi-[0-9a-f]{8,17}\b)"
    r"|(?P<list>(?<![\w.-])[A-Za-z][\w-]*+\[\d++(?:[-,]\d++)++\])"
)
"""Host names: by the label before them, by how clusters number their nodes, by a domain at the end."""
OWN_WORDS = frozenset((
    "parser", "parser_title", "kind", "exit", "confidence", "role", "clock", "basis", "attention",
    "convention", "grade", "unit", "rule", "how", "precision",
))  # fmt: skip
"""Fields that hold words of ours, never of the log."""
EVERYDAY = frozenset((
    "root", "user", "users", "admin", "ubuntu", "train", "trainer", "training", "data", "model",
    "models", "test", "none", "null", "true", "false", "rank", "step", "steps", "loss", "checkpoint",
    "host", "node", "local", "localhost", "shared", "scratch", "work", "home", "run", "runs",
    "unknown", "pending",
))  # fmt: skip
"""Names that are also words: replaced inside paths, left alone elsewhere."""
PLACE_FACT = regex.compile(r"(?i)(?:.*_)?(?:path|paths|dir|prefix|file|save|load|root|folder)")
HOST_FACT = regex.compile(r"(?i)(?:.*_)?(?:host|hostname|node|nodes|nodelist|addr|master_addr|pod)")
USER_FACT = regex.compile(r"(?i)(?:.*_)?(?:user|username|owner|entity)")
"""Names of facts whose values are places, hosts and users."""
