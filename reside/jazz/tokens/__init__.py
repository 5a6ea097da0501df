"""Request tokens: they prove which account makes an HTTP request.

There are three forms. The JavaScript form (jazz-tools `generateAuthToken`) contains only account and time: a receiver
can reuse it elsewhere for a minute. The bound form, for our own replicas, also covers receiver, method, path and body.
Its receiver refuses a second use; see `replay` for the limits. The shared form has an authentication code in place of
the signature, which takes a tenth of the time. Its key follows from the sealers of both accounts (`shared`), so the
caller must know the receiver's agent.

    Authorization: Jazz <signature>~<account>~<ms>
    Authorization: Jazz-Bound <signature>~<account>~<ms>~<agent>~<nonce>~<receiver>~<method>~<path hash>~<body hash>
    Authorization: Jazz-Shared <code>~…, and the same fields

Signature and code cover all other fields, so a refusal can name the field that does not match.
"""

from reside.jazz.tokens.replay import UsedTokens, UsedTokensInMemory
from reside.jazz.tokens.shared import can_share
from reside.jazz.tokens.signing import sign_jazz_token, sign_request
from reside.jazz.tokens.verifying import RequestVerifier, read_request_account, verify_jazz_token

__all__ = [
    "RequestVerifier",
    "UsedTokens",
    "UsedTokensInMemory",
    "can_share",
    "read_request_account",
    "sign_jazz_token",
    "sign_request",
    "verify_jazz_token",
]
