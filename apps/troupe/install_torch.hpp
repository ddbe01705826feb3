// `troupe doctor --install-torch`: makes the LibTorch that training needs, below TROUPE_HOME, by
// pip in a Python environment that is removed afterwards. One thread.
#pragma once

#include "runtime/core/result.hpp"

namespace troupe::app {

// Says what it downloads, from where, and how large it is; then asks on the terminal, unless
// hub::said_yes(). Does nothing when training finds one already. Errors: kConfig (no TROUPE_HOME;
// nobody to ask), kInterrupted (the answer is no), kResources (no python3 with venv, no space, pip
// failed). After an error nothing is left of it.
core::Result<void> install_torch();

}  // namespace troupe::app
