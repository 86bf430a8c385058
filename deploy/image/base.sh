#!/bin/sh
# base.sh NAME: make the image NAME, a minimal Debian with Python, where no registry can be reached.  As root.
# DEBIAN is a mirror of Debian; debootstrap has a default.
set -eu

folder=$(mktemp -d -p /var/tmp)
trap 'rm -rf "$folder"' EXIT
debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv bookworm "$folder" \
    ${DEBIAN:+"$DEBIAN"}
rm -rf "$folder"/var/cache/apt/* "$folder"/var/lib/apt/lists/*

container=$(buildah from scratch)
buildah add --quiet "$container" "$folder" /
buildah commit --quiet --rm "$container" "$1"
