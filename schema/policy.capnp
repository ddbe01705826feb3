@0xfbdc21385196c2f2;
# To the policy.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");
using Generator = import "/schema/generator.capnp";

struct TrainUpdate {
  update @0 :UInt64;
  groups @1 :UInt32;
}

struct Metric {
  name @0 :Text;
  value @1 :Float64;
}

struct Trained {
  version @0 :UInt64;
  metrics @1 :List(Metric);
}

struct PublishWeights {}

struct Published {
  version @0 :UInt64;
  source @1 :Generator.WeightSource;
}
