"""Sessions that the official server takes and that a careless reader does not survive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interop.strangers.stranger import set_key, trusting

if TYPE_CHECKING:
    from collections.abc import Callable

    from interop.strangers.stranger import Stranger

Session = tuple[str, list[dict[str, Any]]]

FORGED = [set_key("x", "forged")]

POISON: dict[str, Callable[[Stranger], Session]] = {
    "an ordinary session": lambda who: (who.session(), [trusting(FORGED)]),
    "a session without an ending": lambda who: (f"{who.author}_session", [trusting(FORGED)]),
    "an ending outside of base58": lambda who: (f'{who.author}_session_0"\\\n', [trusting(FORGED)]),
    "an ending of many bytes": lambda who: (f"{who.author}_session_é𝒳__proto__", [trusting(FORGED)]),
    "a session of 256 characters": lambda who: (f"{who.author}_session_z".ljust(256, "1"), [trusting(FORGED)]),
    "two endings": lambda who: (f"{who.author}_session_z1_session_z2", [trusting(FORGED)]),
    "no sealer": lambda who: (f"sealer_/{who.agent.signer_id}_session_z1", [trusting(FORGED)]),
    "an unusable sealer": lambda who: (f"sealer_zé0O/{who.agent.signer_id}_session_z1", [trusting(FORGED)]),
    "a time that no double has": lambda who: (who.session(), [trusting(FORGED, made_at=2**53 + 2)]),
    "a time near the end of 64 bits": lambda who: (who.session(), [trusting(FORGED, made_at=2**63)]),
    "changes that are no JSON": lambda who: (who.session(), [trusting("nope")]),
    "changes that look like a cipher": lambda who: (who.session(), [trusting('encrypted_U","\n')]),
    "meta that looks like a cipher": lambda who: (who.session(), [trusting(FORGED, meta='binary_U"}\x00')]),
    "empty changes": lambda who: (who.session(), [trusting("")]),
    "deep changes": lambda who: (who.session(), [trusting("[" * 3_000 + "]" * 3_000)]),
    "meta that is no JSON": lambda who: (who.session(), [trusting(FORGED, meta="nope")]),
    "deep meta": lambda who: (who.session(), [trusting(FORGED, meta='{"a":' * 3_000 + "1" + "}" * 3_000)]),
    "an unknown member": lambda who: (who.session(), [trusting(FORGED, extra=1)]),
    "no key": lambda who: (
        who.session(),
        [{"encryptedChanges": "x", "keyUsed": "", "madeAt": 1, "privacy": "private"}],
    ),
    "a key of a prototype": lambda who: (
        who.session(),
        [{"encryptedChanges": "encrypted_U", "keyUsed": "__proto__", "madeAt": 1, "privacy": "private"}],
    ),
}
