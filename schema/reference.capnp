@0xb4221722c6049524;
# Messages to and from the reference role: log-probs under the frozen model.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

struct ScoreLogprobs {
  prompt @0 :Data;            # int32
  responses @1 :List(Data);   # int32 each: the ids behind the prompt
  temperature @2 :Float32;
  targets @3 :List(Data);     # uint32 each: the places in the response whose log-probs are wanted,
                              # ascending; empty, or no list at all: every one
}

struct Logprobs {
  samples @0 :List(Data);  # float32 each, one value per target
}
