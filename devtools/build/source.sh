# Gets sources of packages from the Debian or Ubuntu release that has them. `subject`, which messages begin with, is set before
# this file is sourced. `distribution`, `release` and the folder `work` are set before sources are got. DEBIAN_MIRROR and
# DEBIAN_KEYRING, or UBUNTU_MIRROR and UBUNTU_KEYRING, name the mirror and keyring of a distribution that this machine does not
# run.
# shellcheck shell=bash
subject=${subject-} distribution=${distribution-} release=${release-} work=${work-}

# Ends with status 3, because something cannot be had here.
skip() {
  echo "$subject: skipped, $*"
  exit 3
}

# release_of MAJOR: prints the distribution and the release whose source package has this major version of PostgreSQL.
release_of() {
  case $1 in
    14) echo Ubuntu jammy ;;
    15) echo Debian bookworm ;;
    16) echo Ubuntu noble ;;
    17) echo Debian trixie ;;
    18) echo Debian forky ;;
    19) echo Debian experimental ;;
    *) fail "There is no PostgreSQL $1 to test: 14 to 19." ;;
  esac
}

# mirrors DISTRIBUTION: prints the mirrors of this machine's packages, one a line, if the machine runs DISTRIBUTION.
mirrors() {
  local named=${1^^}_MIRROR
  if [[ -n ${!named-} ]]; then
    printf '%s\n' "${!named}"
  else
    # shellcheck disable=SC2016
    apt-get indextargets "Origin: $1" 'Created-By: Packages' --format '$(REPO_URI)' | sort -u
  fi
}

# Prints the release's suites at a mirror. Debian's security updates are on a separate mirror.
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

# Options of apt that name another architecture than this machine's.
architecture=()

# Runs apt with this script's own lists and sources, so that those of the machine stay unchanged.
own_apt() {
  "$1" "${architecture[@]}" -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists" \
    -o APT::Sandbox::User=root "${@:2}"
}

# write_sources deb|deb-src: writes the release's sources of packages, or of the packages' sources.
write_sources() {
  local mirror suite
  for mirror in $(mirrors "$distribution"); do
    for suite in $(suites "$mirror"); do
      echo "$1 [signed-by=$(keyring "$distribution")] $mirror $suite main"
    done
  done >"$work/sources.list"
}

# read_lists deb|deb-src: reads the release's lists of packages, or of the packages' sources. The update fails for a suite that the
# release does not have, and the other suites are enough.
read_lists() {
  [[ -r $(keyring "$distribution") ]] ||
    skip "only $distribution $release has it, and this machine lacks $(keyring "$distribution") to check it with"
  write_sources "$1"
  [[ -s $work/sources.list ]] || skip "only $distribution $release has it; name a mirror in ${distribution^^}_MIRROR"
  mkdir -p "$work/lists/partial"
  own_apt apt-get update -q >"$work/apt.log" 2>&1 || true
}

# get_package PACKAGE: unpacks the package into the folder WORK/package.
get_package() {
  read_lists deb
  (cd "$work" && own_apt apt-get download -q "$1" >>apt.log 2>&1) || {
    tail -n 5 "$work/apt.log"
    skip "$1 of $distribution $release cannot be had; above is why"
  }
  dpkg-deb --extract "$work/$1"_*.deb "$work/package"
}

# get_source PACKAGE: unpacks the sources into the folder WORK/source, without the distribution's own changes. A mirror may list a
# version whose files it has lost, so older versions are tried, too.
get_source() {
  local version
  read_lists deb-src
  for version in $(own_apt apt-cache showsrc "$1" 2>>"$work/apt.log" | sed -n 's/^Version: //p' | sort -rV) ''; do
    [[ -n $version ]] || {
      tail -n 5 "$work/apt.log"
      skip "the sources of $distribution $release cannot be had; above is why"
    }
    if (cd "$work" && own_apt apt-get source -q --download-only --tar-only "$1=$version" >>"$work/apt.log" 2>&1); then break; fi
  done
  mkdir "$work/source"
  tar --extract --file "$(compgen -G "$work/*.orig.tar.*" | grep -v '\.asc$')" \
    --directory "$work/source" --strip-components=1
}
