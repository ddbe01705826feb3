@0xe7c15a20b8d94f36;
# Messages of supervised training: the rows of a dataset, and evaluations on held-out rows.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

# To the data role: rows at the places [first, first + count) of the order in which training takes
# them, or of the held-out rows.
struct FetchRows {
  heldOut @0 :Bool;
  first @1 :UInt64;
  count @2 :UInt32;  # 0: as many as fit a page
}

# One row of a dataset, encoded.
struct TrainingRow {
  id @0 :UInt64;       # index in its dataset
  prompt @1 :Data;     # int32; empty for a sequence
  answer @2 :Data;     # int32: the sequence, the better answer or the rated answer
  rejected @3 :Data;   # int32
  learn @4 :Data;      # a byte for each token of a sequence: 1 where it is learned
  margin @5 :Float64;
  desirable @6 :Bool;
  file @7 :Text;       # where the row is from, for messages to users
  line @8 :UInt64;
  teacher @9 :UInt32;  # of the row's domain, in the order of the configuration
  labels @10 :Data;    # int32: the token to learn at each placeholder; empty with soft labels
  shares @11 :Data;    # float32: the probability of the first reward token at each placeholder
  category @12 :Text;  # of a held-out row: each category gets figures of its own; empty: none
}

# As many of the rows asked for as fit, at least one.
struct RowsPage {
  rows @0 :List(TrainingRow);
  total @1 :UInt64;  # rows of that dataset
}

# To the trainer: loss and figures over the held-out rows after `steps` steps. Answered by `trained`.
struct EvaluateRows {
  steps @0 :UInt64;
  last @1 :Bool;  # of the run
}
