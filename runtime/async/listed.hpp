// Takes a waiter off its list however its wait ends: value, deadline, close or cancellation. Lives in
// the waiting coroutine's frame; the list's owner outlives the wait.
#pragma once

#include <list>
#include <memory>
#include <utility>

namespace troupe::async {

template <class Waiter>
class Listed {
 public:
  using List = std::list<std::shared_ptr<Waiter>>;

  Listed(List& list, std::shared_ptr<Waiter> waiter)
      : list_(list), place_(list.insert(list.end(), std::move(waiter))) {}
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;
  ~Listed() { list_.erase(place_); }

 private:
  List& list_;
  typename List::iterator place_;
};

}  // namespace troupe::async
