"""Request tokens: they prove which account makes an HTTP request.

There are two forms. The JavaScript form (jazz-tools `generateAuthToken`) contains only account and time: a receiver can
reuse it elsewhere for a minute. The bound form, for our own replicas, also covers receiver, method, path and body. Its
receiver refuses a second use; see `replay` for the limits.

    Authorization: Jazz <signature>~<account>~<ms>
    Authorization: Jazz-Bound <signature>~<account>~<ms>~<agent>~<nonce>~<receiver>~<method>~<path hash>~<body hash>

The signature of the bound form covers all other fields, so a refusal can name the field that does not match.
"""

from reside.jazz.tokens.replay import UsedTokens, UsedTokensInMemory
from reside.jazz.tokens.signing import sign_jazz_token, sign_request
from reside.jazz.tokens.verifying import RequestVerifier, read_request_account, verify_jazz_token

__all__ = [
    "RequestVerifier",
    "UsedTokens",
    "UsedTokensInMemory",
    "read_request_account",
    "sign_jazz_token",
    "sign_request",
    "verify_jazz_token",
]
