# Builds the API server of Kubernetes for a test of the manifests, with the go command:
#
#	sh tools/kubernetes.sh VERSION build/kube-apiserver
#
# The module on the proxy lacks the modules below its staging folder; the proxy has them
# under their own names, with version 0 instead of 1. Building takes about fifteen minutes
# of one processor.
set -eu

version=$1 into=$2
source=$(mktemp -d)
trap 'chmod -R u+w "$source" && rm -rf "$source"' EXIT
from=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
cp -r "$from" "$source/kubernetes"
chmod -R u+w "$source"
cd "$source/kubernetes"
rm -rf vendor go.work go.work.sum
sed -i -E "s#=> \./staging/src/(k8s\.io/[a-z0-9-]+)#=> \1 v0.${version#*.}#" go.mod
CGO_ENABLED=0 nice go build -mod=mod -trimpath -o "$OLDPWD/$into" ./cmd/kube-apiserver
