// Who may read what a run writes: its user alone, or also the user's group. A setting of the whole
// process, which its children inherit; called once, before anything is written.
#pragma once

namespace troupe::store {

// Folders are made with mode 0700 and files with 0600 from now on; with `group`, 0750 and 0640.
// What exists stays as it is.
void write_privately(bool group);

}  // namespace troupe::store
