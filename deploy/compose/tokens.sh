#!/bin/sh
# Makes the tokens of the trial in deploy/compose/secrets/, once: what the Envoys,
# Prometheus, the regions and you show. WEIR is the command; else it is built.
set -eu
cd "$(dirname "$0")"
if [ -e secrets/tokens.yaml ]; then
  echo "secrets/tokens.yaml is there already" >&2
  exit 0
fi
weir=${WEIR:-}
if [ -z "$weir" ]; then
  cargo build --quiet --locked --release -p aggregator
  weir=${CARGO_TARGET_DIR:-../../target}/release/weir
fi
mkdir -p secrets
echo "tokens:" > secrets/tokens.new
# The name of its file, and its rights. The first line printed is the token.
while read -r name rights; do
  made=$("$weir" token new --name "$name" --rights "$rights")
  printf '%s' "$made" | head -n 1 | tr -d '\n' > "secrets/$name-token"
  printf '%s\n' "$made" | tail -n +2 >> secrets/tokens.new
done <<END
edge sync
region sync,read
read read
operator read,rules,check,count,backup
END
# Containers run as another user: the folder is yours alone, its files are not.
chmod 700 secrets && chmod 644 secrets/*
mv secrets/tokens.new secrets/tokens.yaml
echo "made deploy/compose/secrets/" >&2
