// The processes below this one: what they have used of the processor, and the end of those that
// nobody waits for. A pipeline adopts what its stages leave behind, so that it is counted and
// ended. Used by one thread.
#pragma once

#include <sys/types.h>

namespace troupe::pipeline {

// From now on processes whose parent ends become children of this one.
void adopt_orphans();

// Seconds of user and system time that all processes below this one have taken since it began, also
// those that have ended and were waited for.
double descendants_cpu_s();

// Seconds of one process alone, without what it waited for; 0 when it is gone.
double process_cpu_s(pid_t pid);

// Waits for adopted processes that have ended. `spared` is left to its owner.
void reap_orphans(pid_t spared);

// Asks every process below this one to end, kills after 5 s what has not, and waits for them.
void end_descendants();

}  // namespace troupe::pipeline
