#include <features.h>
#ifdef __GLIBC__
#include <nss.h>

// Of static programs alone. A static glibc loads what /etc/nsswitch.conf names for accounts and
// hosts, with another glibc of the machine, and dies of it: they come from /etc and DNS in its
// place.

namespace {

[[gnu::constructor]] void keep_to_own_libc() {
  ::__nss_configure_lookup("passwd", "files");
  ::__nss_configure_lookup("group", "files");
  ::__nss_configure_lookup("hosts", "files dns");
}

}  // namespace
#endif
