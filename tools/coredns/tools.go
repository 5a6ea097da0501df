//go:build tools

// Package tools pins CoreDNS; tools/build.py builds it.
package tools

import _ "github.com/coredns/coredns"
