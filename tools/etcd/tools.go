//go:build tools

// Package tools pins etcd; tools/build.py builds it.
package tools

import _ "go.etcd.io/etcd/server/v3"
