@0xa126962e413ca66b;
# What several domains share. Evolution rules (docs/protocol.md): append fields with the next ordinal,
# never reuse, renumber or retype one; a retired field becomes obsoleteN; readers take unknown enum
# values and union arms as errors of that message, never of the connection.
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

# Token ids are int32, log-probs float32, versions uint64: little-endian arrays in one Data each, so
# that a reader walks one pointer a record.
struct TokenRecord {
  tokens @0 :Data;      # int32
  behaviour @1 :Data;   # float32, log-prob when sampled
  keptMass @2 :Data;    # float32, empty when the sampler kept everything
  versions @3 :Data;    # uint64
  reference @4 :Data;   # float32, empty without a reference model
  finish @5 :Text;      # "eos", "stop", "length", "aborted"
}
