#include "apps/session/roles/run_table.hpp"

#include "apps/session/roles/learn_settings.hpp"

namespace troupe::app {

const config::Table& run_table() {
  static const config::Table table(learn_tables());
  return table;
}

}  // namespace troupe::app
