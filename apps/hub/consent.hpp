// Whether something may be moved over the network: as the user has said beforehand (--yes,
// TROUPE_YES), else as she answers on a terminal. The terminal's thread.
#pragma once

#include <string>

namespace troupe::hub {

// --yes, or TROUPE_YES in the environment.
bool said_yes();
// From now on said_yes, also for the processes that this one starts.
void say_yes();
// From now on nothing is asked of a hub (HF_HUB_OFFLINE), nor by processes that this one starts.
void stay_offline();

// Whether a user can be asked: input and error output are a terminal.
bool can_ask();
// Prints the question on standard error and reads the answer, "no" by default and after a signal.
bool ask(const std::string& question);

}  // namespace troupe::hub
