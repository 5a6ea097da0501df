#!/bin/bash
# Build Flux's command and collect the CRD of its Kustomizations, for `python benchmarks/cli.py --flux FOLDER/flux`.
#   benchmarks/flux/build_cli.sh FOLDER    FOLDER/flux and FOLDER/crds/; about five minutes of two cores
# A release embeds the manifests that `flux install` and `flux bootstrap` apply. They are not in the module, and the
# benchmark runs neither command: one file without a manifest stands for them.
set -euo pipefail
folder=$(realpath -m "${1:?usage: build_cli.sh FOLDER}")
version=v2.9.5
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
source_of() { (cd "$work" && go mod download -json "$1@$2") | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])'; }

mkdir -p "$folder/crds"
cp -r "$(source_of github.com/fluxcd/flux2/v2 $version)" "$work/flux2"
chmod -R u+w "$work/flux2"
cd "$work/flux2"
controller=github.com/fluxcd/kustomize-controller
cp "$(source_of $controller "$(go list -m -f '{{.Version}}' $controller/api)")"/config/crd/bases/*_kustomizations.yaml "$folder/crds/"
mkdir cmd/flux/manifests
echo "# no manifests" >cmd/flux/manifests/none.yaml
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.VERSION=${version#v}" -o "$folder/flux" ./cmd/flux
