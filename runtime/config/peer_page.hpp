// Pages for those who come from another trainer (docs/coming_from_*.md), made from a list of its
// names and peer_names.def. Pure functions.
#pragma once

#include "runtime/config/table.hpp"

#include <string>

namespace troupe::config {

// `peer`: openrlhf, trl, verl or llamafactory. `list`: lines "NAME<tab>METHOD,METHOD", as in
// tests/data/peer_names; the first says where they are from. Errors: kConfig, no such peer; kData,
// a line of another form.
core::Result<std::string> peer_page(const Table& table,
                                    const std::string& peer,
                                    const std::string& list);

}  // namespace troupe::config
