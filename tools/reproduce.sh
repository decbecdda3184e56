# Builds the commands of the last commit twice, in folders of different names and with
# separate build caches, and compares them.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
build() { # folder, build cache or none, file for the sums
	git clone -q . "$dir/$1"
	[ -z "$2" ] || export GOCACHE="$2"
	make -s -C "$dir/$1" build
	(cd "$dir/$1/build/bin" && sha256sum criticizer-worker criticizer-starter criticizer complaint-rewrite) >"$dir/$3"
}
build first "" first.sums
build "another/folder, deeper" "$dir/cache" second.sums
cat "$dir/first.sums"
if ! cmp -s "$dir/first.sums" "$dir/second.sums"; then
	cat "$dir/second.sums"
	echo "tools/reproduce.sh: error: two builds of one commit differ" >&2
	exit 1
fi
echo "two builds of $(git rev-parse --short HEAD) are equal"
