@0xd48e43a780a081e9;
# Messages from the policy to the critic, and its answers.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");
using Common = import "/schema/common.capnp";

# A page of an update's groups, in the order of the update. The critic keeps them until it has
# learned from them; a page with cursor 0 starts over.
struct ScoreValues {
  update @0 :UInt64;
  cursor @1 :UInt32;  # place of the page's first group in the update
  groups @2 :List(Common.Group);
}

struct GroupValues {
  samples @0 :List(Data);  # float32 each, one value per response token
}

struct CriticValues {
  groups @0 :List(GroupValues);
}

# A page of returns: the targets of the values.
struct PutReturns {
  update @0 :UInt64;
  cursor @1 :UInt32;
  groups @2 :List(GroupValues);
}

struct TrainCritic {
  update @0 :UInt64;
  groups @1 :UInt32;  # of the whole update
}
