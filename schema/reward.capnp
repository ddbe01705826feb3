@0xa595b995d868593b;
# To a reward role.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

struct ScoreItem {
  prompt @0 :Text;
  response @1 :Text;
  label @2 :Text;
  columns @3 :Text;  # the dataset row as a JSON object
}

struct Score {
  items @0 :List(ScoreItem);
}

struct ScoreValue {
  union {
    value @0 :Float64;
    missing @1 :Text;  # why there is none; never a zero
  }
}

struct Scores {
  values @0 :List(ScoreValue);
}
