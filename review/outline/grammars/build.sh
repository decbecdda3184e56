#!/bin/sh
# build.sh makes the grammars of review/outline: one WebAssembly module for each
# language, compressed. It needs npm, and clang, lld and wasi-libc as Debian has them
# (clang-19, lld-19, wasi-libc, libclang-rt-19-dev-wasm32). The sources are the npm
# packages below, at fixed versions; npm checks their digests.
set -eu
cd "$(dirname "$0")"
out=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc="${CLANG:-clang-19} --target=wasm32-wasi -O2 -DNDEBUG -w -ffile-prefix-map=$work=."

# unpack NAME VERSION: unpacks the npm package into a folder, and prints it.
unpack() {
	dir=$work/$(echo "$1" | tr '@/' '__')
	if [ ! -d "$dir" ]; then
		mkdir "$dir"
		(cd "$dir" && npm pack --silent "$1@$2" >/dev/null && tar xzf ./*.tgz --strip-components=1)
	fi
	echo "$dir"
}

core=$(unpack tree-sitter 0.25.0)/vendor/tree-sitter/lib
$cc -c "$core/src/lib.c" -I "$core/include" -I "$core/src" -o "$work/core.o"

# build LANGUAGE FOLDER: links the grammar in the folder.
build() {
	objects=
	for source in parser scanner; do
		if [ -e "$2/$source.c" ]; then
			$cc -c "$2/$source.c" -I "$2" -o "$work/$1.$source.o"
			objects="$objects $work/$1.$source.o"
		fi
	done
	$cc -c outline.c -I "$core/include" -D"LANGUAGE=tree_sitter_$1" -o "$work/outline.o"
	# shellcheck disable=SC2086
	$cc -mexec-model=reactor -Wl,--strip-all -Wl,-z,stack-size=1048576 "$work/outline.o" "$work/core.o" $objects -o "$work/$1.wasm"
	gzip -9 -n <"$work/$1.wasm" >"$out/$1.wasm.gz"
}

grammars='@tree-sitter-grammars'
build c "$(unpack tree-sitter-c 0.24.1)/src"
build cpp "$(unpack tree-sitter-cpp 0.23.4)/src"
build c_sharp "$(unpack tree-sitter-c-sharp 0.23.5)/src"
build java "$(unpack tree-sitter-java 0.23.5)/src"
build go "$(unpack tree-sitter-go 0.25.0)/src"
build python "$(unpack tree-sitter-python 0.25.0)/src"
build javascript "$(unpack tree-sitter-javascript 0.25.0)/src"
build tsx "$(unpack tree-sitter-typescript 0.23.2)/tsx/src"
build typescript "$(unpack tree-sitter-typescript 0.23.2)/typescript/src"
build rust "$(unpack tree-sitter-rust 0.24.0)/src"
build kotlin "$(unpack $grammars/tree-sitter-kotlin 1.1.0)/src"
build swift "$(unpack tree-sitter-swift 0.7.1)/src"
build lua "$(unpack $grammars/tree-sitter-lua 0.4.1)/src"
ls -l "$out"/*.wasm.gz
