@0xa126962e413ca66b;
# Types that several schema files share. Evolution rules (docs/protocol.md): append fields with the
# next ordinal, never reuse, renumber or retype one; a retired field becomes obsoleteN; readers take
# unknown enum values and union arms as errors of that message, never of the connection.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

# The right to sample one group for one slot of an update or evaluation.
struct Ticket {
  update @0 :UInt64;   # the update or evaluation that the group is for
  slot @1 :UInt32;     # place of the group within it, from 0
  attempt @2 :UInt32;  # how often the slot had been issued before
}

struct Tickets {
  tickets @0 :List(Ticket);
}

struct Ack {}

struct Folder {
  folder @0 :Text;
}

struct LoadState {
  folder @0 :Text;
  updates @1 :UInt64;
}

# What a role holds after `loadState`: answers for updates in [from, updates).
struct Loaded {
  from @0 :UInt64;
  updates @1 :UInt64;
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

# A reward that belongs to one token of a response.
struct StepReward {
  token @0 :UInt32;  # index of the step's last token in the response
  reward @1 :Float64;
}

# A turn of the policy: ids that it did not draw, then drawn tokens up to the next turn.
struct Turn {
  begin @0 :UInt32;  # index of its first drawn token in the sample's tokens
  context @1 :Data;  # int32, the ids before that token, behind the turn before
}

# A fork's path begins with the first `tokens` drawn tokens of the path of an earlier sample of its
# episode. It has them as context.
struct Shares {
  sample @0 :UInt32;  # index in the group
  tokens @1 :UInt32;  # at least 1
}

# One sampled response, or one way through an episode. Each array is one Data of little-endian
# numbers, one for each token that the policy drew. `reference`, `values` and `teacher` are empty in
# a run without a reference, a critic or a teacher.
struct Trajectory {
  tokens @0 :Data;     # int32, the sampled ids
  behaviour @1 :Data;  # float32, log-prob when sampled
  versions @2 :Data;   # pairs of uint64: a version, and how many tokens in a row it sampled
  finish @3 :FinishReason;
  text @4 :Text;
  reference @5 :Data;  # float32, log-probs under the reference model
  values @6 :Data;     # float32, values that the critic predicts
  score @7 :Number;    # absent until every reward of its set has scored it
  teacher @8 :Data;    # float32, log-probs under the teacher
  steps @9 :List(StepReward);  # weighted scores of its steps, in order of their tokens
  turns @10 :List(Turn);  # in order, the first with begin 0; empty: one turn without context
  episode @11 :UInt32;    # number of its episode in the group, from 1; 0: it is one of its own
  shares @12 :Shares;     # absent: none
  feedback @13 :Number;   # the score that came with the episode; absent: none came
  feedbackSteps @14 :List(StepReward);  # the same of turns, at their last tokens
  facts @15 :TokenFacts;  # absent: none was asked for
}

# Facts of each drawn token, float32; those that were not asked for are empty.
struct TokenFacts {
  logKeptMass @0 :Data;  # log of the probability that could be drawn
}

# The samples of one prompt, which is what all of their rows begin with.
struct Group {
  ticket @0 :Ticket;
  prompt @1 :Data;  # int32
  samples @2 :List(Trajectory);
}

# One part of a message that is longer than a frame. The receiver's transport acknowledges each part
# and joins the parts, in whatever order they arrive.
struct Part {
  message @0 :UInt64;  # number of the message; a sender uses each once in an epoch
  index @1 :UInt32;    # of this part, from 0
  bytes @2 :UInt64;    # of the whole message
  data @3 :Data;
}

# Completes a message whose parts have all been acknowledged. Its frame has that message's header.
struct Whole {
  message @0 :UInt64;
  epoch @1 :UInt64;  # of the sender of the parts
}
