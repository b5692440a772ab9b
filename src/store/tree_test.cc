#include "store/tree.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>

namespace sextant::store {
namespace {

using Names = std::pair<std::string, std::string>;
using Model = std::map<Names, Tree::Item>;

Tree::Item MakeItem(const std::string& ns, const std::string& name, Revision revision = 1) {
  auto entry = std::make_shared<Entry>();
  entry->key = {"pods", ns, name};
  entry->mod_revision = revision;
  return entry;
}

size_t ModelRank(const Model& model, const Names& at, Tree::Side side) {
  size_t rank = 0;
  for (const auto& [key, item] : model) {
    const bool before = side == Tree::Side::kBefore  ? key < at
                        : side == Tree::Side::kAfter ? key <= at
                                                     : key.first <= at.first;
    if (before) ++rank;
  }
  return rank;
}

void ExpectSame(const Tree& tree, const Model& model) {
  RC_ASSERT(tree.IsSound());
  RC_ASSERT(tree.size() == model.size());
  const std::vector<Tree::Item> all = tree.Slice(0, tree.size());
  size_t i = 0;
  for (const auto& [key, item] : model) RC_ASSERT(all[i++] == item);
}

TEST(Tree, EmptyHasNothing) {
  const Tree tree;
  EXPECT_EQ(tree.size(), 0u);
  EXPECT_EQ(tree.Find("a", "b"), nullptr);
  EXPECT_EQ(tree.Rank("a", "b", Tree::Side::kAfter), 0u);
  EXPECT_TRUE(tree.Slice(0, 10).empty());
  EXPECT_EQ(tree.Erase("a", "b").size(), 0u);
}

TEST(Tree, OldPicturesStay) {
  Tree tree;
  std::vector<Tree> pictures;
  for (int i = 0; i < 300; ++i) {
    pictures.push_back(tree);
    tree = tree.Put(MakeItem("ns", fmt::format("{:04}", i * 7 % 300)));
  }
  for (int i = 0; i < 300; ++i) tree = tree.Erase("ns", fmt::format("{:04}", i));
  EXPECT_EQ(tree.size(), 0u);
  for (size_t i = 0; i < pictures.size(); ++i) {
    EXPECT_EQ(pictures[i].size(), i);
    EXPECT_TRUE(pictures[i].IsSound());
  }
}

TEST(Tree, InOrderMakesFullLeaves) {
  Tree tree;
  for (int i = 0; i < 10'000; ++i) tree = tree.Put(MakeItem("ns", fmt::format("{:06}", i)));
  EXPECT_TRUE(tree.IsSound());
  EXPECT_EQ(tree.Rank("ns", "005000", Tree::Side::kBefore), 5000u);
  EXPECT_EQ(tree.Slice(9'999, 20'000).front()->key.name, "009999");
}

RC_GTEST_PROP(Tree, BehavesAsAMap, ()) {
  Tree tree;
  Model model;
  const auto name = rc::gen::map(rc::gen::inRange(0, 400), [](int i) { return std::to_string(i); });
  const auto ns = rc::gen::element<std::string>("", "a", "aa", "b");
  const int steps = *rc::gen::inRange(1, 1500);
  // Mostly growing, then mostly shrinking, so that splits and merges both happen at every level.
  const int growing = *rc::gen::inRange(0, steps + 1);
  for (int i = 0; i < steps; ++i) {
    const Names key{*ns, *name};
    const bool put = *rc::gen::inRange(0, 10) < (i < growing ? 8 : 2);
    if (put) {
      model[key] = MakeItem(key.first, key.second, static_cast<Revision>(i));
      tree = tree.Put(model[key]);
    } else {
      model.erase(key);
      tree = tree.Erase(key.first, key.second);
    }
    RC_ASSERT(tree.Find(key.first, key.second) == (put ? model[key] : nullptr));
  }
  ExpectSame(tree, model);
  const Names at{*ns, *name};
  for (auto side : {Tree::Side::kBefore, Tree::Side::kAfter, Tree::Side::kAfterNamespace})
    RC_ASSERT(tree.Rank(at.first, at.second, side) == ModelRank(model, at, side));
  const size_t first = *rc::gen::inRange<size_t>(0, model.size() + 2);
  const size_t last = *rc::gen::inRange<size_t>(0, model.size() + 2);
  const std::vector<Tree::Item> slice = tree.Slice(first, last);
  std::vector<Tree::Item> expected;
  for (const auto& [key, item] : model) expected.push_back(item);
  expected.resize(std::min(last, expected.size()));
  expected.erase(expected.begin(),
                 expected.begin() + static_cast<ptrdiff_t>(std::min(first, expected.size())));
  RC_ASSERT(slice == expected);
}

}  // namespace
}  // namespace sextant::store
