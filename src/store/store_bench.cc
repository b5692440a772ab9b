// Commits per second: one at a time (latency of a durable write) and with many in flight.
// On tmpfs the numbers say nothing: the file is made in the current folder.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include "store/stamp.h"
#include "store/testing.h"
#include "store/tree.h"

namespace sextant::store {
namespace {

using testing::FileLab;
using testing::MakeObject;
using testing::MakeWrite;

// Updates of `objects` objects of about 2 KB, `in_flight` at a time.
void Commits(benchmark::State& state, const std::string& path) {
  const auto in_flight = static_cast<int>(state.range(0));
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) unlink((path + suffix).c_str());
  FileLab lab(FileLab::WithPath(path));
  const std::string data(2000, 'x');
  constexpr int kObjects = 10'000;
  int next = 0;
  for (auto _ : state) {
    std::promise<void> round;
    std::atomic<int> left = in_flight;
    lab.core.Post([&] {
      for (int i = 0; i < in_flight; ++i) {
        const auto op = next < kObjects ? Write::Op::kCreate : Write::Op::kUpdate;
        lab.store->Commit(MakeWrite(op, "ns", std::to_string(next++ % kObjects), data),
                          [&](Committed) {
                            if (--left == 0) round.set_value();
                          });
      }
    });
    round.get_future().get();
  }
  state.SetItemsProcessed(state.iterations() * in_flight);
  lab.Close();
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) unlink((path + suffix).c_str());
}

void BM_CommitFile(benchmark::State& state) { Commits(state, "store_bench.db"); }
void BM_CommitMemory(benchmark::State& state) { Commits(state, ""); }
BENCHMARK(BM_CommitFile)->Arg(1)->Arg(64)->Arg(1000)->Arg(5000)->UseRealTime();
BENCHMARK(BM_CommitMemory)->Arg(1)->Arg(1000)->UseRealTime();

void BM_Stamp(benchmark::State& state) {
  const api::Object object = MakeObject("ns", "name", std::string(2000, 'x'));
  Revision revision = 1;
  for (auto _ : state) benchmark::DoNotOptimize(Stamp(object, ++revision));
}
BENCHMARK(BM_Stamp);

void BM_TreePut(benchmark::State& state) {
  Tree tree;
  std::vector<Tree::Item> items;
  for (int i = 0; i < state.range(0); ++i) {
    auto entry = std::make_shared<Entry>();
    entry->key = {"pods", "default", fmt::format("workload-{:07}", i)};
    items.push_back(entry);
    tree = tree.Put(std::move(entry));
  }
  size_t i = 0;
  for (auto _ : state) {
    tree = tree.Put(items[i]);
    i = (i + 7919) % items.size();
  }
}
BENCHMARK(BM_TreePut)->Arg(1000)->Arg(50'000);

void BM_TreeRange(benchmark::State& state) {
  Tree tree;
  for (int i = 0; i < 50'000; ++i) {
    auto entry = std::make_shared<Entry>();
    entry->key = {"pods", "default", fmt::format("workload-{:07}", i)};
    tree = tree.Put(std::move(entry));
  }
  for (auto _ : state) {
    const size_t first = tree.Rank("default", "workload-0025000", Tree::Side::kAfter);
    benchmark::DoNotOptimize(tree.Slice(first, first + 500));
  }
}
BENCHMARK(BM_TreeRange);

}  // namespace
}  // namespace sextant::store
