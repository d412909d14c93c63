"""From a ticket as people write it to a report that is on it, or to a rehearsal of that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from urllib.parse import urlsplit

from logmfu.errors import TicketError
from logmfu.tickets.address import checked
from logmfu.tickets.credentials import PLACEHOLDER, Credential, lookup, site_of
from logmfu.tickets.parcel import Parcel, Sent
from logmfu.tickets.refusal import printable
from logmfu.tickets.system import System, Target
from logmfu.tickets.systems import SYSTEMS
from logmfu.tickets.wire import Exchange, Wire


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Every request that would be sent, in order, to a ticket that has no report yet."""

    system: System
    target: Target
    exchanges: tuple[Exchange, ...]
    credential: Credential
    """A placeholder: it hides itself in the exchanges, and the address of a webhook from the environment."""


def find(ticket: str, environ: Mapping[str, str]) -> Target:
    """The ticket that is meant. Raises ``TicketError`` when that is nothing, or two things."""
    prefix, _, rest = ticket.partition(":")
    named = [SYSTEMS[prefix]] if prefix in SYSTEMS and rest else _unnamed(ticket)
    spelled = rest if prefix in SYSTEMS and rest else ticket
    found = [target for system in named if (target := system.recognise(spelled, site_of(system, environ)))]
    if len(found) > 1 and "://" in ticket:
        found = [
            target for target in found if target.site == site_of(SYSTEMS[target.system], environ)
        ] or found
    if len(found) != 1:
        raise _not_one(ticket, [target.system for target in found], named)
    return _checked(found[0], environ)


def _unnamed(ticket: str) -> list[System]:
    """Any address could be a webhook's, so that one has to be named."""
    if ticket == "webhook":
        return [SYSTEMS["webhook"]]
    return [system for system in SYSTEMS.values() if system.name != "webhook"]


def _not_one(ticket: str, found: list[str], asked: list[System]) -> TicketError:
    shown = printable(_without_secrets(ticket), 80)
    if found:
        return TicketError(
            f"{shown} can be a ticket of {' or '.join(SYSTEMS[name].title for name in found)}",
            hint="   or   ".join(f"{name}:{shown}" for name in found),
        )
    if ticket == "webhook":
        return TicketError("no webhook is configured", hint="export LOGMFU_WEBHOOK_URL=https://HOST/...")
    facts = [f"{system.title + ':':<9} {'   '.join(system.shapes)}" for system in asked]
    return TicketError(
        f"{shown} is not a ticket", facts=facts, hint="one of these forms; copy the address of its page"
    )


def _without_secrets(ticket: str) -> str:
    parts = urlsplit(ticket) if re.match(r"https?://", ticket) else None
    return f"{parts.scheme}://{parts.hostname}{parts.path}" if parts else ticket


def _checked(target: Target, environ: Mapping[str, str]) -> Target:
    system = SYSTEMS[target.system]
    if not target.site:
        raise TicketError(
            f"{target.item} is a {system.title} key, and no {system.title} is configured",
            facts=[f"{system.variable('URL')} is not set"],
            hint=f"export {system.variable('URL')}=https://HOST, or give the address of the ticket's page",
        )
    checked(target.site, environ)
    return target


def check(target: Target, environ: Mapping[str, str]) -> None:
    """Raise ``TicketError`` now if the library or the credentials are missing: before a long log is read."""
    _require(SYSTEMS[target.system])
    lookup(SYSTEMS[target.system], target, environ)


def deliver(parcel: Parcel, target: Target, *, environ: Mapping[str, str], timeout_s: float = 60.0) -> Sent:
    """Put a parcel onto a ticket. Raises ``TicketError``, which also says how to attach the files by hand."""
    system = SYSTEMS[target.system]
    try:
        _require(system)
        wire = Wire(target.api, lookup(system, target, environ), timeout_s=timeout_s)
        return _posted(system, parcel, target, wire)
    except TicketError as error:
        raise _with_a_way_out(error, parcel, target, environ) from error.__cause__


def _posted(system: System, parcel: Parcel, target: Target, wire: Wire) -> Sent:
    try:
        return system.post(parcel, target, wire)
    except TicketError:
        raise
    except OSError as error:
        raise TicketError("a file of the report cannot be read", facts=[printable(str(error))]) from None
    except Exception as error:
        if not _is_about_the_answer(error, system):
            raise
        said = printable(wire.credential.mask(f"{type(error).__name__}: {error}"), 200)
        raise TicketError(
            f"{system.title} answered with data of another shape than it documents",
            facts=[said],
            hint=f"is {target.site} really {system.title}? which version?",
        ) from error


def _is_about_the_answer(error: Exception, system: System) -> bool:
    """Libraries take answers apart without looking: a missing field is a ``KeyError`` somewhere inside them."""
    own = type(error).__module__.partition(".")[0] in system.modules
    return own or isinstance(
        error, (LookupError, TypeError, ValueError, AttributeError, NotImplementedError)
    )


def rehearse(parcel: Parcel, target: Target, *, environ: Mapping[str, str]) -> Rehearsal:
    """The same steps over a wire that records: no network, no credentials, nothing sent."""
    system = SYSTEMS[target.system]
    _require(system)
    hidden = environ.get(system.variable("URL"), "") if system.name == "webhook" else ""
    token = PLACEHOLDER if system.token_needed or environ.get(system.variable("TOKEN")) else ""
    credential = Credential(token, environ.get(system.variable("EMAIL"), ""), hidden_url=hidden)
    wire = Wire(target.api, credential, answer=system.answer)
    system.post(parcel, target, wire)
    return Rehearsal(system, target, tuple(wire.exchanges), credential)


def _require(system: System) -> None:
    for name in system.modules:
        try:
            import_module(name)
        except ImportError as error:
            raise TicketError(
                f"{system.title} needs a library that is not installed",
                facts=[printable(str(error))],
                hint=f"pip install 'logmfu[{system.name}]'",
            ) from None


def _with_a_way_out(
    error: TicketError, parcel: Parcel, target: Target, environ: Mapping[str, str]
) -> TicketError:
    system = SYSTEMS[target.system]
    hidden = target.system == "webhook" and target.url == environ.get(system.variable("URL"))
    facts = [*error.facts, *(f"on disk: {file}" for file in parcel.files)]
    facts.append(f"by hand: {system.by_hand}" + ("" if hidden else f": {target.url}"))
    told = TicketError(error.what, facts=facts, hint=error.hint)
    told.status = error.status
    return told
