"""Remedies computed for whole kinds of failures (``generate:`` of rules of role advice).

Each takes what the rule matched (captures, traceback) and the case, and gives remedies that are risky
or manual: the kind of a failure is known, not the failure. ``architecture`` and ``model-type`` also say what is
known of a model that a rule of another role found missing.
"""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.kb.types import Match, Remedy, Role


def kind_remedies(generator: str, match: Match, case: Case) -> list[Remedy]:
    """Raises ValueError for a generator that there is not."""
    if generator == "package":
        from mtpdoctor.diagnose.kinds.package import package_remedies

        return package_remedies(match, case)
    if generator == "backend":
        from mtpdoctor.diagnose.kinds.backend import backend_remedies

        return backend_remedies(match, case)
    if generator == "said":
        from mtpdoctor.diagnose.kinds.said import said_remedies

        told = said_remedies(match, case)
        # behind a rule's own remedies it is said anyway which settings to look at
        return told if match.rule.role is Role.ADVICE else [remedy for remedy in told if remedy.edits]
    if generator == "module":
        from mtpdoctor.diagnose.kinds.module import module_remedies

        return module_remedies(match, case)
    if generator == "entry":
        from mtpdoctor.diagnose.kinds.entry import entry_remedies

        return entry_remedies(match, case)
    if generator == "upgrade":
        from mtpdoctor.diagnose.kinds.upgrade import upgrade_remedies

        return upgrade_remedies(match, case)
    if generator == "split":
        from mtpdoctor.diagnose.kinds.split import split_remedies

        return split_remedies(match, case)
    if generator == "block":
        from mtpdoctor.diagnose.kinds.blocks import block_remedies

        return block_remedies(match, case)
    if generator == "host-cache":
        from mtpdoctor.diagnose.kinds.host_cache import host_cache_remedies

        return host_cache_remedies(match, case)
    if generator == "architecture":
        from mtpdoctor.diagnose.kinds.architecture import architecture_remedies

        return architecture_remedies(match, case)
    if generator == "model-type":
        from mtpdoctor.diagnose.kinds.model_type import model_type_remedies

        return model_type_remedies(match, case)
    if generator == "third-party":
        from mtpdoctor.diagnose.kinds.third_party import third_party_remedies

        return third_party_remedies(match, case)
    if generator == "symbol":
        from mtpdoctor.diagnose.kinds.symbol import symbol_remedies

        return symbol_remedies(match, case)
    if generator == "keyword":
        from mtpdoctor.diagnose.kinds.keyword import keyword_remedies

        return keyword_remedies(match, case)
    if generator == "own-import":
        from mtpdoctor.diagnose.kinds.own_import import own_import_remedies

        return own_import_remedies(match, case)
    if generator == "value":
        from mtpdoctor.diagnose.kinds.value import value_remedies

        return value_remedies(match, case)
    if generator == "versions":
        from mtpdoctor.diagnose.kinds.versions import versions_remedies

        return versions_remedies(match, case)
    if generator == "tensor-name":
        from mtpdoctor.diagnose.kinds.tensor import tensor_remedies

        return tensor_remedies(match, case)
    if generator == "callee":
        from mtpdoctor.diagnose.kinds.callee import callee_remedies

        return callee_remedies(match, case)
    if generator == "backend-part":
        from mtpdoctor.diagnose.kinds.backend_part import backend_part_remedies

        return backend_part_remedies(match, case)
    if generator == "native-library":
        from mtpdoctor.diagnose.kinds.native_library import native_library_remedies

        return native_library_remedies(match, case)
    if generator == "optional-name":
        from mtpdoctor.diagnose.kinds.optional_name import optional_remedies

        return optional_remedies(match, case)
    if generator == "bare-flag":
        from mtpdoctor.diagnose.kinds.bare_flag import bare_flag_remedies

        return bare_flag_remedies(match, case)
    if generator == "devices":
        from mtpdoctor.diagnose.kinds.devices import device_remedies

        return device_remedies(match, case)
    if generator == "link-target":
        from mtpdoctor.diagnose.kinds.link_target import link_remedies

        return link_remedies(match, case)
    raise ValueError(f"no generator {generator!r}")


def said_of(match: Match, case: Case) -> str:
    """What the facts of the releases add to the cause that a rule names, for rules whose remedies are worked out
    from them; "" for others."""
    for remedy in match.rule.remedies:
        if remedy.generate == "architecture":
            from mtpdoctor.diagnose.kinds.architecture import architecture_said

            return architecture_said(match, case)
        if remedy.generate == "model-type":
            from mtpdoctor.diagnose.kinds.model_type import model_type_said

            return model_type_said(match, case)
        if remedy.generate == "block":
            from mtpdoctor.diagnose.kinds.blocks import block_said

            return block_said(match, case)
        if remedy.generate == "host-cache":
            from mtpdoctor.diagnose.kinds.host_cache import host_cache_said

            return host_cache_said(match, case)
        if remedy.generate == "symbol":
            from mtpdoctor.diagnose.kinds.symbol import symbol_said

            return symbol_said(match, case)
        if remedy.generate == "own-import":
            from mtpdoctor.diagnose.kinds.own_import import own_import_said

            return own_import_said(match, case)
        if remedy.generate == "tensor-name":
            from mtpdoctor.diagnose.kinds.tensor import tensor_said

            return tensor_said(match, case)
        if remedy.generate == "callee":
            from mtpdoctor.diagnose.kinds.callee import callee_said

            return callee_said(match, case)
        if remedy.generate == "bare-flag":
            from mtpdoctor.diagnose.kinds.bare_flag import bare_flag_said

            return bare_flag_said(match, case)
        if remedy.generate == "link-target":
            from mtpdoctor.diagnose.kinds.link_target import link_said

            return link_said(match, case)
        if remedy.generate == "unknown-flag" and "words" not in match.captures:
            from mtpdoctor.diagnose.kinds.unknown_flag import unknown_flag_said

            return unknown_flag_said(match, case)
    return ""
