package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// value is a JSON value that remembers the order of keys and the spelling of numbers, which
// encoding/json's own maps and floats do not: answers are written down as the server sent them.
//
// It is one of nil, bool, json.Number, string, *array, *object.
type value any

type array struct{ items []value }

type member struct {
	key string
	val value
}

type object struct{ members []member }

func (o *object) get(key string) (value, bool) {
	for _, m := range o.members {
		if m.key == key {
			return m.val, true
		}
	}
	return nil, false
}

func (o *object) getString(key string) string {
	v, _ := o.get(key)
	s, _ := v.(string)
	return s
}

func (o *object) getObject(key string) *object {
	v, _ := o.get(key)
	c, _ := v.(*object)
	return c
}

func (o *object) remove(drop func(m member) bool) {
	o.members = slices.DeleteFunc(o.members, drop)
}

// sorted gives the indexes of the members by the bytes of their keys: the normaliser's walking order.
func (o *object) sorted() []int {
	order := make([]int, len(o.members))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return strings.Compare(o.members[a].key, o.members[b].key)
	})
	return order
}

// parseJSON reads one value and refuses anything after it.
func parseJSON(data []byte) (value, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := readValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the JSON value")
	}
	return v, nil
}

func readValue(d *json.Decoder) (value, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	return readAfter(d, t)
}

func readAfter(d *json.Decoder, t json.Token) (value, error) {
	delim, ok := t.(json.Delim)
	if !ok {
		return t, nil
	}
	if delim == '[' {
		a := &array{}
		for d.More() {
			v, err := readValue(d)
			if err != nil {
				return nil, err
			}
			a.items = append(a.items, v)
		}
		_, err := d.Token()
		return a, err
	}
	o := &object{}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := readValue(d)
		if err != nil {
			return nil, err
		}
		o.members = append(o.members, member{k.(string), v})
	}
	_, err := d.Token()
	return o, err
}

func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // A string always encodes.
	return strings.TrimSuffix(b.String(), "\n")
}

// pretty writes a value with two spaces of indent.
func pretty(v value) string {
	var b strings.Builder
	writePretty(&b, v, "")
	return b.String()
}

func writeScalar(b *strings.Builder, v value) {
	switch t := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(t))
	case json.Number:
		b.WriteString(t.String())
	case string:
		b.WriteString(quote(t))
	}
}

func writePretty(b *strings.Builder, v value, indent string) {
	inner := indent + "  "
	switch t := v.(type) {
	case *array:
		if len(t.items) == 0 {
			b.WriteString("[]")
			return
		}
		b.WriteString("[\n")
		for i, item := range t.items {
			b.WriteString(inner)
			writePretty(b, item, inner)
			writeComma(b, i, len(t.items))
		}
		b.WriteString(indent + "]")
	case *object:
		if len(t.members) == 0 {
			b.WriteString("{}")
			return
		}
		b.WriteString("{\n")
		for i, m := range t.members {
			b.WriteString(inner + quote(m.key) + ": ")
			writePretty(b, m.val, inner)
			writeComma(b, i, len(t.members))
		}
		b.WriteString(indent + "}")
	default:
		writeScalar(b, v)
	}
}

func writeComma(b *strings.Builder, i, n int) {
	if i+1 < n {
		b.WriteString(",")
	}
	b.WriteString("\n")
}

// compact writes a value without spaces; with sorted keys it is the form that @hash is taken of.
func compact(v value, sortKeys bool) string {
	var b strings.Builder
	writeCompact(&b, v, sortKeys)
	return b.String()
}

func writeCompact(b *strings.Builder, v value, sortKeys bool) {
	switch t := v.(type) {
	case *array:
		b.WriteString("[")
		for i, item := range t.items {
			if i > 0 {
				b.WriteString(",")
			}
			writeCompact(b, item, sortKeys)
		}
		b.WriteString("]")
	case *object:
		b.WriteString("{")
		for i, at := range t.order(sortKeys) {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(quote(t.members[at].key) + ":")
			writeCompact(b, t.members[at].val, sortKeys)
		}
		b.WriteString("}")
	default:
		writeScalar(b, v)
	}
}

func (o *object) order(sortKeys bool) []int {
	if sortKeys {
		return o.sorted()
	}
	order := make([]int, len(o.members))
	for i := range order {
		order[i] = i
	}
	return order
}

// at follows a path such as .spec.containers[0].name or .metadata.labels["a.b/c"].
func at(v value, path string) (value, error) {
	for path != "" {
		var key string
		switch {
		case strings.HasPrefix(path, `["`):
			end := strings.Index(path, `"]`)
			if end < 0 {
				return nil, errors.New("path: no \"]")
			}
			key, path = path[2:end], path[end+2:]
		case path[0] == '[':
			end := strings.Index(path, "]")
			if end < 0 {
				return nil, errors.New("path: no ]")
			}
			n, err := strconv.Atoi(path[1:end])
			a, ok := v.(*array)
			if err != nil || !ok || n < 0 || n >= len(a.items) {
				return nil, errors.New("path: no element " + path)
			}
			v, path = a.items[n], path[end+1:]
			continue
		case path[0] == '.':
			end := strings.IndexAny(path[1:], ".[")
			if end < 0 {
				end = len(path) - 1
			}
			key, path = path[1:1+end], path[1+end:]
		default:
			return nil, errors.New("path: . or [ expected at " + path)
		}
		o, ok := v.(*object)
		if !ok {
			return nil, errors.New("path: not an object at ." + key)
		}
		v, ok = o.get(key)
		if !ok {
			return nil, errors.New("path: no key " + key)
		}
	}
	return v, nil
}
