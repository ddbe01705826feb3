@0x80141c347dcfe15b;
# Messages to and from a generator: sampling, and new weights.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");
using Common = import "/schema/common.capnp";

struct Sampling {
  temperature @0 :Float32;
  topP @1 :Float32;
  minP @2 :Float32;
  topK @3 :Int32;
  maxNewTokens @4 :Int32;
  stop @5 :List(Text);
}

struct Generate {
  tickets @0 :List(Common.Ticket);
  sampling @1 :Sampling;
  versionMin @2 :UInt64;  # no token of these groups may come from older weights
}

# Counts only: the groups themselves went to the data role.
struct Generated {
  samples @0 :UInt64;
  tokens @1 :UInt64;
  promptTokens @2 :UInt64;
  seconds @3 :Float64;
}

# Where to fetch a version of the weights. Empty fields: not available that way.
struct WeightLocation {
  hostId @0 :Text;    # of the sender: memory is shared with receivers of the same id
  socket @1 :Text;    # Unix socket that hands out the shared buffer; '@' first: an abstract name
  tcpHost @2 :Text;   # or the path of a Unix socket that leads to the port
  tcpPort @3 :UInt32;
  key @4 :Text;       # a receiver sends it first, as proof that it may read
}

# To the controller: this generator gets no more tickets. Answered once it samples none, or after
# `waitMs`.
struct DrainGenerator {
  name @0 :Text;
  waitMs @1 :UInt32;
}

struct UpdateWeights {
  version @0 :UInt64;
  source @1 :WeightLocation;
  recomputeKv @2 :Bool;  # else running samples keep their keys and values
}
