package main

import (
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

var (
	protobufForm = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	jsonForm     = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		json.SerializerOptions{})
)

func init() {
	// Table and PartialObjectMetadata, which the clients' scheme leaves out.
	if err := metav1.AddMetaToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
}

// encodeProtobuf turns an object written as JSON into the bytes that a Go client would send.
func encodeProtobuf(text []byte) ([]byte, error) {
	return convert(text, jsonForm, protobufForm)
}

// decodeProtobuf turns such bytes into the JSON of the same object.
func decodeProtobuf(data []byte) ([]byte, error) {
	return convert(data, protobufForm, jsonForm)
}

// decodeWatchEvent turns one event of a protobuf watch into {"type":…,"object":…}.
func decodeWatchEvent(frame []byte) ([]byte, error) {
	event := &metav1.WatchEvent{} // Bare, without the prefix that its object has.
	if err := event.Unmarshal(frame); err != nil {
		return nil, fmt.Errorf("not a WatchEvent: %w", err)
	}
	object, err := decodeProtobuf(event.Object.Raw)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"type":%q,"object":%s}`, event.Type, bytes.TrimSpace(object)), nil
}

func convert(data []byte, from, to runtime.Serializer) ([]byte, error) {
	object, kind, err := from.Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	var b bytes.Buffer
	if err := to.Encode(object, &b); err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	return b.Bytes(), nil
}
