@0xa595b995d868593b;
# Messages to and from reward roles, and those that change a run's rewards.
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
  update @4 :UInt64;  # the group's update, counted from 0; 0 for an evaluation
  samples @5 :List(RewardSample);
}

# What a reward reads besides prompt, response and label.
struct RewardReads {
  allColumns @0 :Bool;      # of the dataset row
  columns @1 :List(Text);   # without `allColumns`: these
  messages @2 :Bool;        # the prompt as a list of messages
  tokens @3 :Bool;          # the sampled ids
}

# Asks a reward what it reads: before its first group, when it joins another set, and when it failed.
struct IntroduceReward {}

struct Score {
  group @0 :RewardGroup;
  sent @1 :RewardReads;  # what `group` holds; a column that the row lacks is not in its `columns`
}

# One step of a response, as a process reward model sees it.
struct StepScore {
  end @0 :UInt32;     # bytes of the response's text up to the end of the step
  score @1 :Float64;  # finite
}

struct ScoreValue {
  union {
    value @0 :Float64;
    missing @1 :Text;  # why there is no score; a missing score is never sent as 0
  }
  extra @2 :Text;  # other values of the sample as a JSON object; empty: none
  steps @3 :List(StepScore);  # in order; empty unless the reward scores steps
}

struct Scores {
  values @0 :List(ScoreValue);
  obsolete1 @1 :RewardReads;
  modules @2 :Text;  # once: JSON, the SHA-256 of each file that the reward's code has loaded besides its own
}

# One reward of a set. A sample's score is the set's formula of weight times score of the members.
struct RewardMember {
  name @0 :Text;    # as the user calls it: "format"
  peer @1 :Text;    # role that gives it: "reward/format"
  weight @2 :Float64;
}

# To the data role: from now on this set scores the groups issued for updates from `fromUpdate` on.
struct SetRewards {
  set @0 :UInt64;  # number of the set; each new set has a higher one
  fromUpdate @1 :UInt64;
  members @2 :List(RewardMember);
  lost @3 :List(Text);  # rewards that will never answer; groups that wait for one fail
  formula @4 :Text;     # how the members' scores become one; empty: their weighted sum
}

# drainReward (to the data role) is answered once no open group waits for the reward. detachReward
# goes to the controller.
struct RewardName {
  name @0 :Text;
}

# To the controller, from the process that offers the reward as the role `peer`.
struct AttachReward {
  name @0 :Text;
  peer @1 :Text;  # role that gives it
  weight @2 :Float64;
  formula @3 :Text;  # of the new set; empty: that of the set before
}

# To the controller: changes the weight of a reward, or how the rewards become one score.
struct ReweightReward {
  name @0 :Text;     # empty: no weight changes
  obsolete1 @1 :Text;
  weight @2 :Float64;
  formula @3 :Text;  # of the new set; empty: that of the set before
}

# The new set, and the first update whose groups it scores.
struct RewardsChanged {
  set @0 :UInt64;
  fromUpdate @1 :UInt64;
}
