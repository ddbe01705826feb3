@0xa595b995d868593b;
# To a reward role.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

struct RewardSample {
  response @0 :Text;
  tokens @1 :Data;  # int32, the sampled ids; empty when the reward does not read them
}

# The responses to one prompt, and the data that they share.
struct RewardGroup {
  prompt @0 :Text;
  label @1 :Text;
  columns @2 :Text;   # a JSON object: the columns that are sent
  messages @3 :Text;  # the prompt as a JSON list of messages, empty where it is a text
  update @4 :UInt64;  # updates done when the tickets of the group's update could first be issued
  samples @5 :List(RewardSample);
}

# What a reward reads beside prompt, response and label.
struct RewardReads {
  allColumns @0 :Bool;      # of the dataset row
  columns @1 :List(Text);   # without `allColumns`: these
  messages @2 :Bool;        # the prompt as a list of messages
  tokens @3 :Bool;          # the sampled ids
}

struct Score {
  group @0 :RewardGroup;
  sent @1 :RewardReads;  # what is sent; a column that the row lacks is left out of the object
}

struct ScoreValue {
  union {
    value @0 :Float64;
    missing @1 :Text;  # why there is none; never a zero
  }
  extra @2 :Text;  # a JSON object of other values of the sample; empty: none
}

struct Scores {
  values @0 :List(ScoreValue);
  wanted @1 :RewardReads;  # instead of values: the reward reads this, and not all of it was sent
}

# One reward of a set: the group's score is the sum of weight times score over the members.
struct RewardMember {
  name @0 :Text;    # as the user calls it: "format"
  peer @1 :Text;    # role that gives it: "reward/format"
  weight @2 :Float64;
}

# To the data role: groups issued from now on for updates from `fromUpdate` on are scored by this set.
struct SetRewards {
  set @0 :UInt64;  # number of the set, growing
  fromUpdate @1 :UInt64;
  members @2 :List(RewardMember);
  lost @3 :List(Text);  # names that will never answer: groups that wait for them are to be issued again
}

# Of drainReward: answered once no open group waits for the reward. Of detachReward: to the controller.
struct RewardName {
  name @0 :Text;
}

# To the controller, from the process that brings a reward (peer) or changes its weight.
struct AttachReward {
  name @0 :Text;
  peer @1 :Text;  # role that gives it
  weight @2 :Float64;
}

struct ReweightReward {
  name @0 :Text;
  obsolete1 @1 :Text;
  weight @2 :Float64;
}

struct RewardsChanged {
  set @0 :UInt64;
  fromUpdate @1 :UInt64;
}
