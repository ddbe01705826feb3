#include "runtime/store/private_files.hpp"

#include <sys/stat.h>

namespace troupe::store {

void write_privately(bool group) {
  const mode_t before = ::umask(group ? 027 : 077);
  ::umask(before | (group ? 027 : 077));
}

}  // namespace troupe::store
