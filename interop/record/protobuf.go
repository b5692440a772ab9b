package main

import (
	"bytes"
	"fmt"

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

// encodeProtobuf turns an object written as JSON into the bytes that a Go client would send.
func encodeProtobuf(text []byte) ([]byte, error) {
	return convert(text, jsonForm, protobufForm)
}

// decodeProtobuf turns such bytes into the JSON of the same object.
func decodeProtobuf(data []byte) ([]byte, error) {
	return convert(data, protobufForm, jsonForm)
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
