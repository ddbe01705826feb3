@0x80141c347dcfe15b;
# To a generator.
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
}

struct Generated {
  samples @0 :UInt64;
  tokens @1 :UInt64;
  promptTokens @2 :UInt64;
  seconds @3 :Float64;
}

struct UpdateWeights {
  version @0 :UInt64;
}
