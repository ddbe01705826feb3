@0xfbdc21385196c2f2;
# Messages to and from the policy, and the question for its newest published weights.
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

struct PublishWeights {
  updates @0 :UInt64;
}

# Asks the controller for a version newer than `than`. Answered by `published` as soon as there is
# one, after kNewsWait (actors/limits.def) with the newest there is, or by a failure (notFound) when
# there is none at all.
struct AwaitPublished {
  than @0 :UInt64;  # the version that the asker holds; ignored unless `holds`
  holds @1 :Bool;
}

struct Published {
  version @0 :UInt64;
  source @1 :Generator.WeightLocation;
}
