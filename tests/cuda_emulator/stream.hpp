// Streams and graphs of the emulated devices. Everything is done under the lock of Device.
#pragma once

#include "tests/cuda_emulator/device.hpp"

#include <sched.h>

#include <deque>
#include <memory>
#include <utility>

namespace troupe_emulator {

using Work = std::function<void()>;
using Step = std::function<bool()>;  // work that may need several; true: it is done

std::vector<troupe_emulator_stream*>& streams();  // of the process
extern thread_local int present_device;

}  // namespace troupe_emulator

struct troupe_emulator_graph {
  std::vector<troupe_emulator::Work> work;
  std::vector<const void*> copied;  // device memory that its copies use
};

struct troupe_emulator_stream {
  int device = 0;
  std::deque<troupe_emulator::Step> waiting;
  std::unique_ptr<troupe_emulator_graph> recording;
  bool spoilt = false;  // the recording: something was called that may not be

  void add(troupe_emulator::Work work) {
    if (recording)
      recording->work.push_back(std::move(work));
    else
      waiting.push_back([work = std::move(work)] { return work(), true; });
  }
  void uses(const void* memory) {
    if (recording && troupe_emulator::Device::get().owns(memory))
      recording->copied.push_back(memory);
  }
  // Does what can be done now; true when nothing is left.
  bool advance() {
    troupe_emulator::Device& of_all = troupe_emulator::Device::get();
    of_all.open();
    while (!waiting.empty() && of_all.broken == cudaSuccess && waiting.front()())
      waiting.pop_front();
    if (of_all.broken != cudaSuccess) waiting.clear();
    of_all.close();
    return waiting.empty();
  }
  void finish() {
    while (!advance())
      sched_yield();
  }
};
