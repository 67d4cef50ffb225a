// Work shared among threads.

#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>

namespace neuroscope {

// Threads that somebody else keeps: XLA's own, see exported.h.
class Threads {
 public:
  virtual ~Threads() = default;
  virtual int64_t count() const = 0;
  virtual void schedule(std::function<void()> work) = 0;
};

// Tasks are handed out by a counter. The calling thread takes tasks as well and at the end waits only for those that
// others have begun, so nothing waits for a thread that is not there. What a task throws, `run` throws when all are done.
class Crew {
 public:
  template <typename Task>
  static void run(Threads& threads, int64_t tasks, const Task& task) {
    auto crew = std::make_shared<Crew>(tasks);
    int64_t helpers = std::min<int64_t>(threads.count(), tasks) - 1;
    try {
      for (int64_t i = 0; i < helpers; ++i) threads.schedule([crew, &task] { crew->work(task); });
    } catch (const std::bad_alloc&) {  // with fewer helpers, then
    }
    crew->work(task);
    crew->wait();
    if (crew->thrown_) std::rethrow_exception(crew->thrown_);
  }

  explicit Crew(int64_t tasks) : tasks_(tasks) {}

 private:
  // `task` is alive for as long as there are tasks to take.
  template <typename Task>
  void work(const Task& task) {
    for (int64_t i; (i = next_.fetch_add(1)) < tasks_;) {
      try {
        task(i);
      } catch (...) {
        std::lock_guard<std::mutex> lock(mutex_);
        thrown_ = std::current_exception();
      }
      if (done_.fetch_add(1) + 1 == tasks_) {
        std::lock_guard<std::mutex> lock(mutex_);
        finished_.notify_all();
      }
    }
  }

  void wait() {
    for (int spin = 0; spin < 2000 && done_.load() < tasks_; ++spin) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    std::unique_lock<std::mutex> lock(mutex_);
    finished_.wait(lock, [this] { return done_.load() == tasks_; });
  }

  const int64_t tasks_;
  std::atomic<int64_t> next_{0}, done_{0};
  std::mutex mutex_;
  std::condition_variable finished_;
  std::exception_ptr thrown_;
};

}  // namespace neuroscope
