# Sourced by .ci/engine and .ci/bases. Both need Debian packages, and neither knows a mirror's name:
# whatever the machine's own apt sources say is used.

# Print the address of the Debian archive that this machine installs from. Apt is asked, so it does not
# matter in which of its two formats the sources are written; what it downloaded says which is Debian's.
archive() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 'Component: main' | head -n 1
}

# Say on standard error what went wrong, and end.
fail() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    exit 1
}

need_root() {
    [ "$(id -u)" -eq 0 ] || fail "needs root"
}
