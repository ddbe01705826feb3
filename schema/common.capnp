@0xa126962e413ca66b;
# Types that several schema files share. Evolution rules (docs/protocol.md): append fields with the
# next ordinal, never reuse, renumber or retype one; a retired field becomes obsoleteN; readers take
# unknown enum values and union arms as errors of that message, never of the connection.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

struct Ticket {
  update @0 :UInt64;
  slot @1 :UInt32;
  attempt @2 :UInt32;
}

struct Tickets {
  tickets @0 :List(Ticket);
}

struct Ack {}

struct Folder {
  folder @0 :Text;
}

enum FinishReason {
  eos @0;
  stop @1;
  length @2;
  aborted @3;
}

struct Number {
  value @0 :Float64;
}

# One sampled response. Arrays are little-endian in one Data each, so that a reader walks one pointer
# a record; those of reference and critic are empty where there is none.
struct Trajectory {
  tokens @0 :Data;     # int32
  behaviour @1 :Data;  # float32, log-prob when sampled
  versions @2 :Data;   # runs: a version and its count of tokens, uint64 each
  finish @3 :FinishReason;
  text @4 :Text;
  reference @5 :Data;  # float32
  values @6 :Data;     # float32
  score @7 :Number;    # absent until all rewards have spoken
}

# The samples of one prompt.
struct Group {
  ticket @0 :Ticket;
  prompt @1 :Data;  # int32
  samples @2 :List(Trajectory);
}

# A message that is longer than a frame comes in parts. The receiver's transport acknowledges each
# and puts them together, in whatever order they come.
struct Part {
  message @0 :UInt64;  # its number; a sender gives each once in an epoch
  index @1 :UInt32;
  bytes @2 :UInt64;    # of the whole message
  data @3 :Data;
}

# In place of a message whose parts have been acknowledged, under its own header.
struct Whole {
  message @0 :UInt64;
  epoch @1 :UInt64;  # of the sender of the parts
}
