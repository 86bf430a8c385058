#!/bin/sh
# build.sh NAME: build the service's image without a daemon, then run a container of it, which scores the sample
# pictures.  As root; with buildah, and with debootstrap where no registry can be reached.
#
# Variables: TARGET (cuda or cpu), and BASE, PIP_INDEX_URL and TORCH_INDEX_URL, which are the Dockerfile's arguments.
set -eu

name=$1
cd "$(dirname "$0")/../.."
base=${BASE:-docker.io/library/python:3.11-slim-bookworm}
if [ -z "${BASE:-}" ] && ! buildah pull --quiet "$base"; then
    base=localhost/scoregate-base
    echo "no registry can be reached: building on a Debian that debootstrap makes, $base"
    buildah inspect --type image "$base" >/dev/null 2>&1 || deploy/image/base.sh "$base"
fi

# The machine's own certificates, for an index behind a proxy; buildah's own network needs rights that chroot lacks.
certificates=/etc/ssl/certs/ca-certificates.crt
buildah build --layers --isolation chroot --format docker --network host --target "${TARGET:-cuda}" --tag "$name" \
    --volume "$certificates:$certificates:ro" --build-arg BASE="$base" \
    ${PIP_INDEX_URL:+--build-arg PIP_INDEX_URL="$PIP_INDEX_URL"} \
    ${TORCH_INDEX_URL:+--build-arg TORCH_INDEX_URL="$TORCH_INDEX_URL"} .

container=$(buildah from --isolation chroot "$name")
trap 'buildah rm "$container" >/dev/null' EXIT
buildah run --volume "$PWD/demo:/opt/try/demo:ro" --workingdir /opt/try "$container" \
    python -m demo.show --no-page
