# Builds Ollama for the tests of a real model server, with the go command:
#
#	sh tools/ollama.sh build/ollama
#
# The module on the proxy lacks headers of its vendor folder. Two come from Debian
# packages, which are unpacked and not installed, and one from another Go module. It takes
# about nine minutes of one processor.
set -eu

dir=$(mkdir -p "$1" && cd "$1" && pwd)
malgo=github.com/gen2brain/malgo@v0.11.24
mkdir -p "$dir/root/usr/include/miniaudio" "$dir/deb"
(cd "$dir/deb" && apt-get download -q nlohmann-json3-dev libstb-dev)
for package in "$dir"/deb/*.deb; do
	dpkg -x "$package" "$dir/root"
done
from=$(go mod download -json "$malgo" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
cp "$from/miniaudio.h" "$dir/root/usr/include/miniaudio/"
CPATH="$dir/root/usr/include" CPLUS_INCLUDE_PATH="$dir/root/usr/include" GOBIN="$dir" GOFLAGS=-trimpath \
	nice go install -p 1 github.com/ollama/ollama@v0.17.4
