// `troupe data preview|stats|check|convert`. Each gets the words behind its own.
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

namespace troupe::app {

Result<void> preview_rows(cli::Words words);
Result<void> show_stats(cli::Words words);
Result<void> check_rows(cli::Words words);
Result<void> convert_rows(cli::Words words);

}  // namespace troupe::app
