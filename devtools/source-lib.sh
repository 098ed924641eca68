# Sources of packages from the Debian or Ubuntu release that has them. Sourced with `subject` set, which messages begin with, and
# `distribution`, `release` and the folder `work` before they are got. Those of the distribution that this machine does not run come
# from DEBIAN_MIRROR and DEBIAN_KEYRING, or UBUNTU_MIRROR and UBUNTU_KEYRING.
# shellcheck shell=bash
subject=${subject-} distribution=${distribution-} release=${release-} work=${work-}

# Ends with status 3, where something cannot be had here.
skip() {
  echo "$subject: skipped, $*"
  exit 3
}

# mirrors DISTRIBUTION: where this machine's packages come from, one a line, where it runs this distribution.
mirrors() {
  local named=${1^^}_MIRROR
  if [[ -n ${!named-} ]]; then
    printf '%s\n' "${!named}"
  else
    # shellcheck disable=SC2016
    apt-get indextargets "Origin: $1" 'Created-By: Packages' --format '$(REPO_URI)' | sort -u
  fi
}

# The suites of the release at a mirror: Debian has its security updates on one of their own.
suites() {
  case $1 in
    */debian-security*) echo "$release-security" ;;
    *) echo "$release $release-updates" ;;
  esac
}

keyring() {
  local named=${1^^}_KEYRING
  printf '%s\n' "${!named:-/usr/share/keyrings/${1,,}-archive-keyring.gpg}"
}

# Apt with lists and sources of this script's own, so that those of the machine stay as they are.
own_apt() {
  "$1" -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists" \
    -o APT::Sandbox::User=root "${@:2}"
}

write_sources() {
  local mirror suite
  for mirror in $(mirrors "$distribution"); do
    for suite in $(suites "$mirror"); do
      echo "deb-src [signed-by=$(keyring "$distribution")] $mirror $suite main"
    done
  done >"$work/sources.list"
}

# get_source PACKAGE: into the folder WORK, unpacked without the distribution's own changes. A suite that a release does not have
# fails the update, and the others serve.
get_source() {
  [[ -r $(keyring "$distribution") ]] ||
    skip "only $distribution $release has its sources, and this machine lacks $(keyring "$distribution") to check them with"
  write_sources
  [[ -s $work/sources.list ]] || skip "only $distribution $release has its sources; name a mirror in ${distribution^^}_MIRROR"
  mkdir -p "$work/lists/partial"
  own_apt apt-get update -q >"$work/apt.log" 2>&1 || true
  (cd "$work" && own_apt apt-get source -q --download-only --tar-only "$1" >>"$work/apt.log" 2>&1) || {
    tail -n 5 "$work/apt.log"
    skip "the sources of $distribution $release cannot be had; above is why"
  }
  mkdir "$work/source"
  tar --extract --file "$(compgen -G "$work/*.orig.tar.*" | grep -v '\.asc$')" \
    --directory "$work/source" --strip-components=1
}
