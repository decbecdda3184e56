#!/bin/sh
# Checks that docker can run docker-compose.yml: the versions of engine and compose.
set -eu

# need NAME VERSION LEAST
need() {
    if [ -z "$2" ] || [ "$(printf '%s\n%s\n' "$3" "$2" | sort -V | head -n 1)" != "$3" ]; then
        echo "check.sh: error: $1 ${2:-is missing or cannot be reached}: version $3 or later is needed" >&2
        exit 1
    fi
}

# Before version 23 the engine builds no images with stages from other directories.
need "Docker Engine" "$(docker version --format '{{.Server.Version}}' || true)" 23.0.0
# Before version 2.24.4 compose does not read production.yml.
version=$(docker compose version --short || true)
need "Docker Compose" "${version#v}" 2.24.4
