"""Network devices that a message says are not there, beside those that it says are."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.kb.types import EditTemplate, Match, Remedy, Safety
from mtpdoctor.patterns import lazy

_NAME = lazy(r"[A-Za-z][\w.:@-]*")
_OPTIONS = ("disaggregation_ib_device", "mooncake_ib_device")
_SHOWN = 8


def device_remedies(match: Match, case: Case) -> list[Remedy]:
    """Captures: ``invalid`` and ``available``, the lists of the message.

    A name that is one of those that are there with something behind it (a port, ``-rdm`` of libfabric's domains) is
    meant to be that one. Else the missing ones are left out; where nothing is left, those that are there are named.
    """
    there = _NAME.findall(match.captures.get("available", ""))
    missing = _NAME.findall(match.captures.get("invalid", ""))
    if not there or not missing:
        return []
    meant = {name: _meant(name, there) for name in missing}
    option, typed = _typed(case, missing)
    if option is None:
        return [_shown(there, meant)]
    kept = [meant.get(name, name) for name in typed]
    devices = list(dict.fromkeys(name for name in kept if name is not None))
    ends = sorted({name.removeprefix(to) for name, to in meant.items() if to is not None})
    if None not in meant.values():
        behind = ", ".join(ends)
        why = f"the message lists the devices by these names; the command has {behind} behind them" + (
            ", as in libfabric's names of their domains (fi_info)" if ends == ["-rdm"] else ""
        )
        return [_named(option, devices, Safety.SAFE, why, None)]
    if devices:
        gone = ", ".join(name for name, to in meant.items() if to is None)
        why = f"{gone} is not among the devices that the message lists"
        return [
            _named(option, devices, Safety.RISKY, why, "fewer devices move the KV cache than were asked for")
        ]
    why = "these are the devices that the message lists"
    risk = "which of them are in the network of the other servers, ibdev2netdev and show_gids tell"
    return [_named(option, there[:_SHOWN], Safety.RISKY, why, risk)]


def _named(option: str, devices: list[str], safety: Safety, why: str, risk: str | None) -> Remedy:
    value = ",".join(devices)
    flag = f"--{option.replace('_', '-')}"
    return Remedy(
        title=f"Name the devices as the system does, {flag} {value}",
        safety=safety,
        why=why,
        edits=(EditTemplate("set", flag, value),),
        risk=risk,
    )


def _shown(there: list[str], meant: dict[str, str | None]) -> Remedy:
    wanted = [to for to in meant.values() if to is not None]
    names = ",".join(wanted if len(wanted) == len(meant) else there[:_SHOWN])
    return Remedy(
        title=f"Name devices that are there: {names}",
        safety=Safety.MANUAL,
        why="the message lists them",
        run=("ls /sys/class/infiniband", "ibdev2netdev; show_gids   # which are up, and in which network"),
    )


def _meant(name: str, there: list[str]) -> str | None:
    """The longest name of ``there`` that ``name`` begins with, where what follows does not go on with it."""
    whole = [d for d in there if name.startswith(d) and not name[len(d) : len(d) + 1].isalnum()]
    return max(whole, key=len, default=None)


def _typed(case: Case, missing: list[str]) -> tuple[str | None, list[str]]:
    """The option that names a missing device, and all devices that it names; none where it names them for each GPU."""
    for option in _OPTIONS:
        value = case.facts.look(f"flag.{option}")
        if isinstance(value, str) and not value.lstrip().startswith("{") and not value.endswith(".json"):
            names = [part.strip() for part in value.split(",") if part.strip()]
            if set(missing) & set(names):
                return option, names
    return None, []
