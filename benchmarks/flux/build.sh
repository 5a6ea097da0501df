#!/bin/bash
# Build Flux's kustomize-controller and collect its CRDs, for `python benchmarks/fleet.py --flux FOLDER`.
#   benchmarks/flux/build.sh FOLDER    FOLDER/kustomize-controller and FOLDER/crds/; about four minutes of two cores
set -euo pipefail
folder=$(realpath -m "${1:?usage: build.sh FOLDER}")
version=v1.7.3
module=github.com/fluxcd/kustomize-controller
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
source_of() { (cd "$work" && go mod download -json "$1@$2") | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])'; }

mkdir -p "$folder/crds"
cp -r "$(source_of $module $version)" "$work/controller"
chmod -R u+w "$work/controller"
cd "$work/controller"
cp config/crd/bases/*.yaml "$folder/crds/"
cp "$(source_of github.com/fluxcd/source-controller "$(go mod edit -json | python3 -c '
import json, sys
print(next(r["Version"] for r in json.load(sys.stdin)["Require"] if r["Path"] == "github.com/fluxcd/source-controller/api"))
')")"/config/crd/bases/*.yaml "$folder/crds/"
go mod edit -dropreplace=$module/api # the module's archive has no folder api
CGO_ENABLED=0 go build -mod=mod -trimpath -ldflags "-s -w" -o "$folder/kustomize-controller" .
