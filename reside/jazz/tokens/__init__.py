"""Request tokens: an HTTP request that proves which account makes it.

Two forms. The JavaScript form (jazz-tools `generateAuthToken`) names account and time only: whoever receives one can
use it elsewhere for a minute. The bound form, for our own replicas, also covers receiver, method, path and body, and
its receiver refuses a second use (`replay` says how far that reaches).

    Authorization: Jazz <signature>~<account>~<ms>
    Authorization: Jazz-Bound <signature>~<account>~<ms>~<nonce>~<receiver>~<method>~<path hash>~<body hash>

The signature of the bound form covers all the other fields, so a refusal can say which of them does not fit.
"""

from reside.jazz.tokens.replay import UsedTokens, UsedTokensInMemory, UsedTokensOnDisk
from reside.jazz.tokens.signing import sign_jazz_token, sign_request
from reside.jazz.tokens.verifying import RequestVerifier, read_request_account, verify_jazz_token

__all__ = [
    "RequestVerifier",
    "UsedTokens",
    "UsedTokensInMemory",
    "UsedTokensOnDisk",
    "read_request_account",
    "sign_jazz_token",
    "sign_request",
    "verify_jazz_token",
]
