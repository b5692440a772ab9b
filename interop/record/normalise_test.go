package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the outputs in tests/api/normaliser.json")

// TestVectors runs the normaliser over tests/api/normaliser.json, the examples that the C++ runner's
// normaliser is tested with too.
func TestVectors(t *testing.T) {
	path := filepath.Join("..", "..", "tests", "api", "normaliser.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all.(*array).items {
		vector := v.(*object)
		n := normaliser{servers: []string{"127.0.0.1:6443"}}
		steps, _ := vector.get("steps")
		for i, s := range steps.(*array).items {
			step := s.(*object)
			in, _ := step.get("in")
			fresh, err := parseJSON([]byte(compact(in, false))) // The normaliser changes in place.
			if err != nil {
				t.Fatal(err)
			}
			out := n.normalise(fresh, stepOptions(step))
			want, _ := step.get("out")
			if *update {
				step.remove(func(m member) bool { return m.key == "out" })
				step.members = append(step.members, member{"out", out})
				continue
			}
			if compact(out, true) != compact(want, true) {
				t.Errorf("%s, step %d:\n got %s\nwant %s", vector.getString("name"), i,
					compact(out, false), compact(want, false))
			}
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(pretty(all)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func stepOptions(step *object) options {
	o := options{path: step.getString("path")}
	if v, ok := step.get("items"); ok {
		for _, item := range v.(*array).items {
			o.items = append(o.items, item.(string))
		}
	}
	keep, _ := step.get("keepManagedFields")
	o.keepManagedFields, _ = keep.(bool)
	return o
}

// TestRoundTrip: reading a case and writing it back changes nothing.
func TestRoundTrip(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "tests", "api", "*.case"))
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, path := range files {
		c, err := readCase(path)
		if err != nil {
			t.Error(err)
			continue
		}
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c.path = filepath.Join(t.TempDir(), filepath.Base(path))
		if err := c.write(); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if string(before) != string(after) {
			t.Errorf("%s is not in its written form", path)
		}
	}
}

// TestReads holds the cases to the rule that at most a quarter of the requests read.
func TestReads(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "tests", "api", "*.case"))
	if err != nil {
		t.Fatal(err)
	}
	requests, reads := 0, 0
	for _, path := range files {
		c, err := readCase(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range c.steps {
			switch s.method {
			case "READ", "CLOSE":
				continue
			case "GET", "HEAD":
				reads++
			}
			requests++
		}
	}
	if requests < 400 || reads*4 > requests {
		t.Errorf("%d requests, %d of them reads", requests, reads)
	}
}

func TestPath(t *testing.T) {
	v, err := parseJSON([]byte(`{"a":{"b":[{"c":1},{"c":"two"}],"x.y/z":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		".a.b[1].c": "two", ".a.b[0].c": "1", `.a["x.y/z"]`: "true", ".a.b[0]": `{"c":1}`,
	} {
		got, err := at(v, path)
		if err != nil || plain(got) != want {
			t.Errorf("%s: %v %v, want %s", path, got, err, want)
		}
	}
	for _, path := range []string{".b", ".a.b[2]", ".a.b.c", "a", `.a["x`} {
		if _, err := at(v, path); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}

func TestExpand(t *testing.T) {
	v := variables{"ns": "n", "c": "a+b/="}
	got, err := v.expand("/x/{{ns}}?continue={{c|q}}&{{3*z}}")
	if want := "/x/n?continue=a%2Bb%2F%3D&zzz"; err != nil || got != want {
		t.Errorf("%q %v, want %q", got, err, want)
	}
	if _, err := v.expand("{{nope}}"); err == nil {
		t.Error("an unknown variable is no error")
	}
}
